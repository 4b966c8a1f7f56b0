package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
)

// mostHandshakes is how many sets of versions and ciphers Caddy's configuration holds, besides those that are always there.
// Each of them makes every handshake a little slower, and whoever may write an Ingress may ask for one.
const mostHandshakes = 32

// offered are the handshakes that hosts want beyond the versions alone. It is immutable.
type offered []ir.Handshake

func (o offered) has(h *ir.Handshake) bool {
	return slices.ContainsFunc(o, func(have ir.Handshake) bool { return have.Name() == h.Name() })
}

// with adds the handshakes that are wanted. What nobody wants any more stays, because to take it away would be a reload,
// unless there is no room. It returns what there is no room for. There always is for that of all hosts without a policy of
// their own, by its name: nobody who may write an Ingress is to take from all others what the administrator asks for.
func (o offered) with(wanted offered, global string) (next, left offered) {
	fresh := slices.DeleteFunc(slices.Clone(wanted), func(h ir.Handshake) bool { return o.has(&h) })
	if len(fresh) == 0 {
		return o, nil
	}
	next = slices.Clone(o)
	if len(next)+len(fresh) > mostHandshakes {
		next = slices.DeleteFunc(next, func(h ir.Handshake) bool { return !wanted.has(&h) })
	}
	if i := slices.IndexFunc(fresh, func(h ir.Handshake) bool { return h.Name() == global }); i >= 0 {
		next, fresh = append(next, fresh[i]), slices.Delete(fresh, i, i+1)
	}
	room := min(max(mostHandshakes-len(next), 0), len(fresh))
	return append(next, fresh[:room]...), fresh[room:]
}

// offer brings the handshakes that hosts want into Caddy's configuration. Until they are there, and where they cannot come
// there, the hosts have the versions that they want, and all ciphers.
func (e *Engine) offer(ctx context.Context) {
	before := *e.offered.Load()
	options := e.live.Table.Global()
	global := options.TLS.Effective(options.OnlyHTTP1)
	next, left := before.with(e.live.Table.Wanted(), global.Name())
	e.leaveOut(left)
	if len(next) == len(before) && !slices.ContainsFunc(next, func(h ir.Handshake) bool { return !before.has(&h) }) {
		return
	}
	e.offered.Store(&next)
	if e.Settings().Admin == settings.AdminOff {
		e.log.Warn("ssl-ciphers have no effect, because Caddy's admin API is off and its configuration cannot be changed")
		return
	}
	e.mend(ctx, handshakeReason)
}

// leaveOut tells of the handshakes that there is no room for, once.
func (e *Engine) leaveOut(left offered) {
	if slices.EqualFunc(left, e.crowdedOut, func(a, b ir.Handshake) bool { return a.Name() == b.Name() }) {
		return
	}
	e.crowdedOut = left
	if e.source != nil {
		e.publish()
	} else if len(left) > 0 {
		e.log.Warn("too many different ssl-ciphers: some hosts get all ciphers", zap.Int("sets left out", len(left)),
			zap.Int("most", mostHandshakes))
	}
}

// withoutCiphers returns a verdict for each object whose ciphers found no room.
func (e *Engine) withoutCiphers() []*report.Verdict {
	if len(e.crowdedOut) == 0 {
		return nil
	}
	hosts := map[string][]string{}
	for _, h := range e.config.VirtualHosts {
		if h.TLS == nil {
			continue
		}
		wanted := h.TLS.Effective(e.live.Table.Global().OnlyHTTP1)
		if e.crowdedOut.has(&wanted) {
			hosts[h.TLSOrigin] = append(hosts[h.TLSOrigin], cmp.Or(h.Host, "every other host"))
		}
	}
	all := make([]*report.Verdict, 0, len(hosts))
	for _, origin := range slices.Sorted(maps.Keys(hosts)) {
		all = append(all, &report.Verdict{Object: ir.ParseRef(origin), Problems: []report.Problem{{
			Severity: report.Warning, Reason: report.QuotaExceeded, Field: report.AnnotationField(report.Ciphers),
			Message: fmt.Sprintf("there is room for %d different lists of ssl-ciphers, and other hosts have them all: %s gets Caddy's own "+
				"ciphers; use the same list as another Ingress", mostHandshakes, strings.Join(hosts[origin], ", ")),
		}}})
	}
	return all
}
