package translate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// balanced is the result of balance for one backend: the backend with its load balancing settings, and the problems of
// the Ingresses that use it.
type balanced struct {
	backend  *ir.Backend
	problems map[ir.Ref][]report.Problem
}

// balance merges the load balancing settings of all Ingresses that use the same backend. users lists these Ingresses,
// as returned by users.of. As in ingress-nginx, settings of different Ingresses are not combined: all settings come
// from the oldest Ingress with load balancing annotations.
func balance(found *ir.Backend, users []*ingress.Result) *balanced {
	b := &balanced{backend: found}
	if len(users) == 0 {
		return b
	}
	// If no Ingress has load balancing annotations, use the default settings of the first Ingress that is not a canary.
	// If all Ingresses are canaries, use the settings of the first canary.
	winner := users[max(slices.IndexFunc(users, func(r *ingress.Result) bool { return r.Canary == nil }), 0)]
	if i := slices.IndexFunc(users, func(r *ingress.Result) bool { return r.Balances }); i >= 0 {
		winner = users[i]
	}
	for _, r := range users {
		if r.Balances && !reflect.DeepEqual(r.LoadBalancing, winner.LoadBalancing) {
			b.conflict(r, winner)
		}
	}
	whole := *found
	whole.LoadBalancing = winner.LoadBalancing
	whole.LoadBalancing.ClientIP = found.LoadBalancing.ClientIP
	whole.LoadBalancing.UseVirtualAddress = winner.LoadBalancing.UseVirtualAddress && found.VirtualAddress != ""
	whole.LoadBalancing.SessionCookie = cookie(winner.LoadBalancing.SessionCookie, users)
	if !reflect.DeepEqual(&whole, found) {
		b.backend = &whole
	}
	return b
}

func (b *balanced) conflict(loser, winner *ingress.Result) {
	if b.problems == nil {
		b.problems = map[ir.Ref][]report.Problem{}
	}
	ref, without := refOf(loser.Object), ""
	if overruled := overruledAnnotations(&loser.LoadBalancing, &winner.LoadBalancing); len(overruled) > 0 {
		without = ": the annotations " + strings.Join(overruled, ", ") + " of this Ingress have no effect on it"
	}
	b.problems[ref] = append(b.problems[ref], report.Problem{
		Severity: report.Warning, Reason: report.BackendConflict, Field: "metadata.annotations",
		Message: fmt.Sprintf(
			"%s configures different load balancing for the backend %s, and its settings apply to all Ingresses with "+
				"this backend%s",
			snapshot.Elder(winner.Object, loser.Object), b.backend.ID, without),
	})
}

// balancingAnnotations maps the load balancing annotations to the fields of ir.LoadBalancing that they configure.
var balancingAnnotations = []struct {
	annotation string
	part       func(*ir.LoadBalancing) any
}{
	{"load-balance", func(lb *ir.LoadBalancing) any {
		if lb.Policy == ir.PolicyHash {
			return ir.Policy("")
		}
		return lb.Policy
	}},
	{"upstream-hash-by", func(lb *ir.LoadBalancing) any { return lb.HashBy }},
	{"upstream-hash-by-subset", func(lb *ir.LoadBalancing) any { return lb.HashSubset }},
	{"affinity and session-cookie-*", func(lb *ir.LoadBalancing) any { return lb.SessionCookie }},
	{"service-upstream", func(lb *ir.LoadBalancing) any { return lb.UseVirtualAddress }},
	{"slow-start", func(lb *ir.LoadBalancing) any { return lb.SlowStart }},
	{"eject-after-failures", func(lb *ir.LoadBalancing) any { return lb.EjectAfter }},
	{"health-check-*", func(lb *ir.LoadBalancing) any { return lb.HealthCheck }},
}

// overruledAnnotations compares the load balancing settings of an Ingress (loser) with the settings of the Ingress that
// takes precedence for the backend (winner). It returns the annotations of loser that have no effect, because the
// settings of winner have other values.
func overruledAnnotations(loser, winner *ir.LoadBalancing) []string {
	var all []string
	for _, a := range balancingAnnotations {
		if part := a.part(loser); !reflect.ValueOf(part).IsZero() && !reflect.DeepEqual(part, a.part(winner)) {
			all = append(all, a.annotation)
		}
	}
	return all
}

// cookie returns a copy of the session cookie c in which Origins lists the Ingresses whose routes set the cookie.
func cookie(c *ir.SessionCookie, users []*ingress.Result) *ir.SessionCookie {
	if c == nil {
		return nil
	}
	whole := *c
	whole.Origins = nil
	for _, r := range users {
		switch {
		case r.LoadBalancing.SessionCookie == nil:
		case r.Canary != nil:
			// The session cookie of a canary is set by the routes of its main Ingresses, so list these Ingresses.
			for _, main := range r.Mains {
				whole.Origins = append(whole.Origins, main.String())
			}
		default:
			whole.Origins = append(whole.Origins, refOf(r.Object).String())
		}
	}
	slices.Sort(whole.Origins)
	whole.Origins = slices.Compact(whole.Origins)
	return &whole
}

// backends returns the backends that are affected by the change c, keyed by their IDs. The value is nil for a backend
// that no route uses any more.
func (t *Translator) backends(c *change) map[string]*ir.Backend {
	now := map[string]*ir.Backend{}
	for id := range c.backends {
		now[id] = t.balance(c, id)
	}
	return now
}

// balance merges the load balancing settings of one backend again, and returns the backend, or nil if no route uses it
// any more. It adds the Ingresses that have problems with this backend, or had such problems before, to c.objects.
func (t *Translator) balance(c *change, id string) *ir.Backend {
	noteProblems := func(b *balanced) {
		if b != nil {
			c.objects.add(maps.Keys(b.problems))
		}
	}
	noteProblems(t.balanced.Get(id))
	if t.routes.Get(id) == 0 {
		t.routes.Delete(id)
		t.found.Delete(id)
		t.balanced.Delete(id)
		return nil
	}
	next := isolatingPanics(balance, t.found.Get(id), t.withMains(id, t.users.of(id)))
	t.balanced.Set(id, next)
	noteProblems(next)
	return next.backend
}

// balancing is the type of the function balance. Tests use other functions of this type.
type balancing func(found *ir.Backend, users []*ingress.Result) *balanced

// The method try calls b. If b panics, try returns the panic as fault. Otherwise fault is nil.
func (b balancing) try(found *ir.Backend, users []*ingress.Result) (whole *balanced, fault *panics.Panic) {
	fault = panics.Try(func() { whole = b(found, users) })
	return whole, fault
}

// isolatingPanics calls balance, and isolates Ingresses that make it panic. It passes the Ingresses to balance one
// after another, starting with the oldest. An Ingress that makes balance panic is skipped and gets a problem. The
// settings come from the other Ingresses. If balance still panics, the load balancing annotations of all Ingresses are
// ignored.
func isolatingPanics(balance balancing, found *ir.Backend, users []*ingress.Result) *balanced {
	whole, fault := balance.try(found, users)
	if fault == nil {
		return whole
	}
	faults := map[*ingress.Result]*panics.Panic{}
	var well []*ingress.Result
	for _, r := range users {
		if _, fault := balance.try(found, append(slices.Clip(well), r)); fault != nil {
			faults[r] = fault
		} else {
			well = append(well, r)
		}
	}
	if whole, fault = balance.try(found, well); fault != nil {
		whole = &balanced{backend: found}
	}
	for r, fault := range faults {
		whole.quarantine(r, fault)
	}
	return whole
}

func (b *balanced) quarantine(r *ingress.Result, fault *panics.Panic) {
	if b.problems == nil {
		b.problems = map[ir.Ref][]report.Problem{}
	}
	ref := refOf(r.Object)
	b.problems[ref] = append(b.problems[ref], report.Problem{
		Severity: report.Error, Reason: report.Quarantined, Field: "metadata.annotations",
		Message: fmt.Sprintf(
			"the load balancing annotations of this Ingress have no effect on the backend %s, because reading them "+
				"failed: %v",
			b.backend.ID, fault),
	})
}
