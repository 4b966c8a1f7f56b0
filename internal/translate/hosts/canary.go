package hosts

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// CanaryBackend identifies a canary Ingress and the backend to which it sends its share of the requests.
type CanaryBackend struct {
	Canary ir.Ref
	// Backend is the ID of the backend.
	Backend string
}

// canaries adds the canaries of the host to its routes. Each path of a canary gets a share of the requests for the same
// path of its main object, which is an ordinary Ingress. results are the canaries with a rule for the host. fallbacks
// are the canaries without rules, whose default backends apply to every host. known is true if the host has a main
// object.
func (m *mergeState) canaries(results, fallbacks []*Contribution, known bool) {
	for _, r := range results {
		for _, p := range r.Paths[m.Host.Host] {
			if known {
				m.join(r, p)
			} else {
				m.problem(r, report.Problem{Severity: report.Warning, Reason: report.NoMainIngress, Field: p.Field,
					Message: m.noMain(r, p)})
			}
		}
	}
	for _, r := range fallbacks {
		main, found := m.taken[m.key(r, r.Fallback.Match)]
		// If the default backend of the canary's main object is served on this host, let the canary share its requests.
		// If it is not served, call join only for the host "", which reports the missing main object once. On a named
		// host, it is normal that another path or default backend takes precedence.
		if m.Host.Host == "" || found && main.path == main.by.Fallback {
			m.join(r, r.Fallback)
		}
	}
}

// join lets the canary r share the requests for the path p of its main object. As in ingress-nginx, a main object with
// the same host, path and path type must exist. It must also be in the same namespace, so that a canary cannot take
// requests from another tenant. Otherwise join reports a problem.
func (m *mergeState) join(r *Contribution, p *Path) {
	key := m.key(r, p.Match)
	main, found := m.taken[key]
	problem := report.Problem{Severity: report.Warning, Reason: report.NoMainIngress, Field: p.Field}
	switch {
	case !found || main.path.Last != p.Last:
		problem.Message = m.noMain(r, p)
	case main.by.Object.GetNamespace() != r.Object.GetNamespace():
		problem.Severity = report.Error
		problem.Message = fmt.Sprintf(
			"%s defines the path %s of %s, and is in another namespace: a canary gets requests of its own "+
				"namespace only",
			main.by.Ref(), p.Match.Path, OrEvery(m.Host.Host))
	case r.Canary.Closed:
		return
	case main.canary != nil:
		problem.Reason = report.PathConflict
		problem.Message = fmt.Sprintf(
			"%s is also a canary for the path %s of %s, and a path can have only one canary: this Ingress gets no "+
				"requests",
			snapshot.Elder(main.canary.Object, r.Object), p.Match.Path, OrEvery(m.Host.Host))
	case !reflect.DeepEqual(main.by.DefaultChains, r.DefaultChains):
		problem.Severity = report.Error
		problem.Message = fmt.Sprintf(
			"the option chain_default sets other chains for this Ingress than for %s, because their classes differ: "+
				"the canary gets no requests. Use the same class", main.by.Ref())
	case main.path.Backend.ID == p.Backend.ID:
		problem.Reason = report.InvalidBackend
		problem.Message = fmt.Sprintf("the canary has no effect, because its backend %s is also the backend of %s",
			p.Backend.ID,
			main.by.Ref())
	default:
		m.taken[key] = claim{by: main.by, path: main.path, route: main.route, canary: r}
		if m.Mains == nil {
			m.Mains = map[CanaryBackend][]ir.Ref{}
		}
		of := CanaryBackend{r.Ref(), p.Backend.ID}
		m.Mains[of] = append(m.Mains[of], main.by.Ref())
		m.share(main.route, routesWith(r.Canary, main.route, ir.WeightedBackend{Backend: p.Backend, Canary: r.Ref()}))
		return
	}
	m.problem(r, problem)
}

// noMain returns the message for a canary without a main Ingress. If a main Ingress has the same path with a different
// path type, the message says so.
func (m *mergeState) noMain(r *Contribution, p *Path) string {
	const until = "a canary gets requests only beside a main Ingress with the same host, path and pathType"
	if p.Last {
		return fmt.Sprintf("no main Ingress defines a default backend for %s: %s", OrEvery(m.Host.Host), until)
	}
	other := ir.MatchExact
	if p.Match.Type == ir.MatchExact {
		other = ir.MatchPrefix
	}
	if main, ok := m.taken[m.key(r, ir.PathMatch{Type: other, Path: p.Match.Path})]; ok && !main.path.Last {
		return fmt.Sprintf("%s defines the path %s of %s with the pathType %s, and the canary has the pathType %s: %s",
			main.by.Ref(), p.Match.Path, OrEvery(m.Host.Host), pathType(other), pathType(p.Match.Type), until)
	}
	return fmt.Sprintf("no main Ingress defines the path %s of %s: %s", p.Match.Path, OrEvery(m.Host.Host), until)
}

func pathType(t ir.MatchType) string {
	if t == ir.MatchExact {
		return "Exact"
	}
	return "Prefix"
}

// The method share replaces one route in the host's list of routes with several routes (by), which are inserted at the
// same position.
func (m *mergeState) share(route *ir.Route, by []*ir.Route) {
	i := slices.Index(m.Host.Routes, route)
	m.Host.Routes = slices.Replace(m.Host.Routes, i, i+1, by...)
}

// routesWith returns the routes that replace the route main of a main object and divide its requests between the main
// object's backend and the canary's backend. As in ingress-nginx, session cookies have the highest precedence, then the
// canary's header, its cookie and its weight. All other settings are copied from main. While the canary's backend has
// no endpoints, the main object's backend serves all requests. The weight of canary is set here.
func routesWith(c *ir.Canary, main *ir.Route, canary ir.WeightedBackend) []*ir.Route {
	weighted := func(weight int) ir.WeightedBackend {
		canary.Weight = weight
		return canary
	}
	toMain := main.Backends
	toCanary := []ir.WeightedBackend{weighted(1), {Backend: toMain[0].Backend, Fallback: true}}
	var routes []*ir.Route
	on := func(to []ir.WeightedBackend, conditions *ir.Conditions) {
		route := *main
		route.Match.Conditions, route.Backends = conditions, to
		routes = append(routes, &route)
	}
	header := func(to []ir.WeightedBackend, value string, regex bool) {
		on(to, &ir.Conditions{Headers: []ir.ValueMatch{{Name: c.Header, Value: value, Regex: regex}}})
	}
	cookie := func(to []ir.WeightedBackend, value string) {
		on(to, &ir.Conditions{Cookies: []ir.ValueMatch{{Name: c.Cookie, Value: value}}})
	}
	on(toMain, &ir.Conditions{Session: true})
	on(toCanary, &ir.Conditions{Session: true})
	switch {
	case c.Header == "":
	case c.HeaderValue != "":
		header(toCanary, c.HeaderValue, false)
	case c.BadHeaderPattern:
		header(toMain, "", true)
	case c.HeaderPattern != "":
		header(toCanary, c.HeaderPattern, true)
	default:
		header(toCanary, "always", false)
		header(toMain, "never", false)
	}
	if c.Cookie != "" {
		cookie(toCanary, "always")
		cookie(toMain, "never")
	}
	switch weight := min(c.Weight, c.Total); weight {
	case 0:
		on(toMain, nil)
	case c.Total:
		on(toCanary, nil)
	default:
		on([]ir.WeightedBackend{
			{Backend: toMain[0].Backend, Weight: c.Total - weight, Fallback: true}, weighted(weight),
		}, nil)
	}
	return routes
}
