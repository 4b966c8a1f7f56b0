package translate

import (
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/hosts"
	"github.com/k8singress/k8singress/internal/ingress"
	"github.com/k8singress/k8singress/internal/ir"
)

// withMains replaces each canary of a list from users.of by one as its main Ingresses for this backend have it: health checks,
// ejection, slow start and the virtual address are those of the first of them by host, the session cookie is that of the first
// one that has one, and the routes of those that have one set it. With an affinity of its own, the canary has its own cookie,
// which the routes of all of them set.
func (t *Translator) withMains(backend string, users []*ingress.Result) []*ingress.Result {
	for i, r := range users {
		if r.Canary == nil {
			continue
		}
		canary := *r
		canary.Mains = t.mainsOf(r, backend)
		lb := &canary.LoadBalancing
		for n, ref := range canary.Mains {
			main := t.results[ref]
			if n == 0 {
				from := &main.LoadBalancing
				lb.UseVirtualAddress, lb.SlowStart, lb.EjectAfter, lb.HealthCheck =
					from.UseVirtualAddress, from.SlowStart, from.EjectAfter, from.HealthCheck
			}
			canary.Balances = canary.Balances || main.Balances
		}
		if !r.Canary.OwnAffinity {
			t.takeSession(&canary)
		}
		users[i] = &canary
	}
	return users
}

// takeSession gives a canary the session cookie of its main Ingresses, and leaves it those that have one.
func (t *Translator) takeSession(canary *ingress.Result) {
	canary.Mains = slices.DeleteFunc(canary.Mains, func(ref ir.Ref) bool { return t.results[ref].LoadBalancing.SessionCookie == nil })
	canary.LoadBalancing.SessionCookie = nil
	if len(canary.Mains) > 0 {
		canary.LoadBalancing.SessionCookie = t.results[canary.Mains[0]].LoadBalancing.SessionCookie
	}
}

// mainsOf returns the main Ingresses whose requests a canary shares with a backend, in the order of their hosts.
func (t *Translator) mainsOf(canary *ingress.Result, backend string) []ir.Ref {
	names := slices.Sorted(maps.Keys(canary.Paths))
	if canary.Fallback != nil {
		names = append(names, "")
	}
	var mains []ir.Ref
	for _, host := range names {
		m := t.merged[host]
		if m == nil {
			continue
		}
		for _, ref := range m.Mains[hosts.CanaryBackend{Canary: refOf(canary.Object), Backend: backend}] {
			if !slices.Contains(mains, ref) {
				mains = append(mains, ref)
			}
		}
	}
	return mains
}
