package translate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/ingress"
	"github.com/k8singress/k8singress/internal/ir"
)

// withMains returns the Ingresses of a backend, with each canary as its main Ingresses have it: it has the session cookie of
// the first of them that has one, unless it keeps to its own, and the routes that set the cookie are theirs.
func (t *Translator) withMains(users []*ingress.Result) []*ingress.Result {
	users = slices.Clone(users)
	for i, r := range users {
		if r.Canary == nil {
			continue
		}
		canary := *r
		canary.Mains = t.mainsOf(r)
		if !r.Canary.OwnAffinity {
			canary.LoadBalancing.SessionCookie = nil
			for _, ref := range canary.Mains {
				main := t.results[ref]
				canary.LoadBalancing.SessionCookie = cmp.Or(canary.LoadBalancing.SessionCookie, main.LoadBalancing.SessionCookie)
			}
			canary.Balances = r.Balances || canary.LoadBalancing.SessionCookie != nil
		}
		users[i] = &canary
	}
	return users
}

// mainsOf returns the Ingresses with whose requests a canary shares, in the order of their hosts.
func (t *Translator) mainsOf(canary *ingress.Result) []ir.Ref {
	hosts := slices.Sorted(maps.Keys(canary.Paths))
	if canary.Fallback != nil {
		hosts = append(hosts, "")
	}
	var mains []ir.Ref
	for _, host := range hosts {
		if m := t.merged[host]; m != nil {
			if ref, ok := m.Mains[refOf(canary.Object)]; ok && !slices.Contains(mains, ref) {
				mains = append(mains, ref)
			}
		}
	}
	return mains
}
