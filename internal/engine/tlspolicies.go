package engine

import (
	"context"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/structure"
)

// offerTLSPolicies brings the handshakes that hosts want into Caddy's configuration. Until they are there, and where they
// cannot come there, the hosts have the versions that they want, and all ciphers.
func (l *loop) offerTLSPolicies(ctx context.Context) {
	before, options := *l.tlsPolicies.Load(), l.live.Table.Global()
	global := options.TLS.Effective(options.OnlyHTTP1)
	next, refused := before.With(l.live.Table.Wanted(), global.Name())
	l.reportCrowdedOut(refused)
	if next.Equal(before) {
		return
	}
	l.tlsPolicies.Store(&next)
	if l.Settings().Admin == settings.AdminOff {
		l.log.Warn("ssl-ciphers have no effect, because Caddy's admin API is off and its configuration cannot be changed")
		return
	}
	l.patchStructure(ctx, handshakeReason)
}

// reportCrowdedOut reports the handshakes that found no slot, once.
func (l *loop) reportCrowdedOut(refused structure.Slots) {
	if refused.Equal(l.crowdedOut) {
		return
	}
	l.crowdedOut = refused
	if l.source != nil {
		l.publish()
	} else if len(refused) > 0 {
		l.log.Warn("too many different ssl-ciphers: some hosts get all ciphers", zap.Int("sets left out", len(refused)),
			zap.Int("most", structure.MaxSlots))
	}
}
