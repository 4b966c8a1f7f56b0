package translate

import (
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// withMains replaces each canary in users with a copy that has some load balancing settings of its main Ingresses,
// whose requests the canary shares. The settings for health checks, ejection, slow start and the virtual address are
// copied from the main Ingress of the alphabetically first host. The session cookie is copied as well (see
// takeSession), unless affinity-canary-behavior is legacy. users must be the result of users.of for this backend.
func (t *Translator) withMains(backend string, users []*ingress.Result) []*ingress.Result {
	for i, r := range users {
		if r.Canary == nil {
			continue
		}
		canary := *r
		canary.Mains = t.mainsOf(r, backend)
		lb := &canary.LoadBalancing
		for n, ref := range canary.Mains {
			main := t.results.Get(ref)
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

// takeSession replaces the session cookie of the canary with the cookie of its first main Ingress that configures a
// session cookie. It removes main Ingresses without a session cookie from canary.Mains, because their routes must not
// set the cookie.
func (t *Translator) takeSession(canary *ingress.Result) {
	canary.Mains = slices.DeleteFunc(canary.Mains,
		func(ref ir.Ref) bool { return t.results.Get(ref).LoadBalancing.SessionCookie == nil })
	canary.LoadBalancing.SessionCookie = nil
	if len(canary.Mains) > 0 {
		canary.LoadBalancing.SessionCookie = t.results.Get(canary.Mains[0]).LoadBalancing.SessionCookie
	}
}

// mainsOf returns the main Ingresses that send a share of their requests to the given backend of a canary, sorted by
// host.
func (t *Translator) mainsOf(canary *ingress.Result, backend string) []ir.Ref {
	names := slices.Sorted(maps.Keys(canary.Paths))
	if canary.Fallback != nil {
		names = append(names, "")
	}
	var mains []ir.Ref
	for _, host := range names {
		m := t.merged.Get(host)
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
