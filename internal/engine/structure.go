package engine

import (
	"context"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/apply"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/structure"
)

// patching is the work on the structure. It waits for Caddy, so it has a goroutine of its own, one at a time.
type patching struct {
	running sync.WaitGroup
	ended   chan patched
	// again is the reason to patch once more after the patch under way, or empty.
	underWay bool
	again    string
}

// patched is the result of a patch. reason is the label of k8singress_config_reloads_total.
type patched struct {
	reason  string
	changed bool
	err     error
}

// patchStructure begins to put our part of the structure into Caddy's configuration where it is missing. reason is the label of
// k8singress_config_reloads_total.
func (l *loop) patchStructure(ctx context.Context, reason string) {
	m := &l.patching
	if m.underWay {
		m.again = reason
		return
	}
	m.underWay, m.again = true, ""
	m.running.Go(func() {
		changed, err := l.structure(ctx)
		m.ended <- patched{reason, changed, err}
	})
}

// onPatched notes the result of a patch, and counts it if Caddy has loaded its configuration again.
func (l *loop) onPatched(ctx context.Context, m patched) {
	l.patching.underWay = false
	switch {
	case m.err != nil && ctx.Err() == nil:
		l.log.Error("applying the structure through Caddy's admin API; trying again", zap.Error(m.err))
		l.retry.arm()
	case m.err == nil && !l.live.Pending():
		l.retry.succeeded()
	}
	if m.err == nil && m.changed {
		l.metrics.reloads.WithLabelValues(m.reason).Inc()
	}
	if again := l.patching.again; again != "" {
		l.patchStructure(ctx, again)
	}
}

// structure puts our part into Caddy's configuration where it is missing or different. A Caddyfile has all of it from
// the start, so this is for who writes the JSON of the app alone. It returns whether Caddy had to load.
func (e *Engine) structure(ctx context.Context) (bool, error) {
	address := e.Settings().Admin
	if address == settings.AdminOff {
		// The configuration cannot be changed then, and the adapter has put everything into it.
		return false, nil
	}
	admin, err := apply.NewAdmin(address)
	if err != nil {
		return false, err
	}
	defer admin.Close()
	// Reading the configuration waits until Caddy has loaded it. The options may be others then.
	return admin.Change(ctx, func(config map[string]any) error {
		return structure.Merge(config, e.Settings(), *e.tlsPolicies.Load()...)
	})
}

// LoadStructure makes a Caddy without our app one that takes documents: it puts the app with these options, and the
// structure that goes with them, into its configuration. admin is the address of its admin API.
func LoadStructure(ctx context.Context, admin string, o settings.Config) error {
	client, err := apply.NewAdmin(admin)
	if err != nil {
		return err
	}
	defer client.Close()
	o.Source, o.Admin = nil, admin
	_, err = client.Change(ctx, func(config map[string]any) error {
		if err := structure.Merge(config, o); err != nil {
			return fmt.Errorf("the structure of the document does not fit: %w", err)
		}
		structure.Branch(config, "apps")["k8singress"] = structure.Tree(o.WithoutDefaults())
		return nil
	})
	return err
}

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
