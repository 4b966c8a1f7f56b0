package structure

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// MaxSlots is how many sets of versions and ciphers Caddy's configuration has TLS policies for, besides those that are always
// there. Each of them makes every handshake a little slower, and everyone who may write an Ingress may ask for one.
const MaxSlots = 32

// Slots are the handshakes beyond the TLS versions alone that Caddy's configuration has policies for. The value is immutable.
type Slots []ir.Handshake

// Has says whether there is a policy for a handshake.
func (s Slots) Has(h *ir.Handshake) bool {
	return slices.ContainsFunc(s, func(have ir.Handshake) bool { return have.Name() == h.Name() })
}

// With adds the handshakes that hosts want. A policy that no host wants any more stays, because removing it would be a
// reload, unless its slot is needed. It returns the handshakes that found no slot. The one named global always finds one:
// no author of an Ingress is to take the slot of the ciphers that the administrator sets for all hosts.
func (s Slots) With(wanted Slots, global string) (next, refused Slots) {
	added := slices.DeleteFunc(slices.Clone(wanted), func(h ir.Handshake) bool { return s.Has(&h) })
	if len(added) == 0 {
		return s, nil
	}
	next = slices.Clone(s)
	if len(next)+len(added) > MaxSlots {
		next = slices.DeleteFunc(next, func(h ir.Handshake) bool { return !wanted.Has(&h) })
	}
	if i := slices.IndexFunc(added, func(h ir.Handshake) bool { return h.Name() == global }); i >= 0 {
		next, added = append(next, added[i]), slices.Delete(added, i, i+1)
	}
	free := min(max(MaxSlots-len(next), 0), len(added))
	return append(next, added[:free]...), added[free:]
}

// Equal says whether both have the same handshakes in the same order.
func (s Slots) Equal(other Slots) bool {
	return slices.EqualFunc(s, other, func(a, b ir.Handshake) bool { return a.Name() == b.Name() })
}

// Problems returns a verdict for each object that sets ciphers of handshakes that found no slot. onlyHTTP1 says that no host
// offers HTTP/2.
func (s Slots) Problems(virtualHosts []*ir.VirtualHost, onlyHTTP1 bool) []*report.Verdict {
	if len(s) == 0 {
		return nil
	}
	hosts := map[string][]string{}
	for _, h := range virtualHosts {
		if h.TLS == nil {
			continue
		}
		if wanted := h.TLS.Effective(onlyHTTP1); s.Has(&wanted) {
			hosts[h.TLSOrigin] = append(hosts[h.TLSOrigin], cmp.Or(h.Host, "every other host"))
		}
	}
	all := make([]*report.Verdict, 0, len(hosts))
	for _, origin := range slices.Sorted(maps.Keys(hosts)) {
		all = append(all, &report.Verdict{Object: ir.ParseRef(origin), Problems: []report.Problem{{
			Severity: report.Warning, Reason: report.QuotaExceeded, Field: report.AnnotationField(report.Ciphers),
			Message: fmt.Sprintf("there is room for %d different lists of ssl-ciphers, and other hosts have them all: %s gets Caddy's own "+
				"ciphers; use the same list as another Ingress", MaxSlots, strings.Join(hosts[origin], ", ")),
		}}})
	}
	return all
}
