package live

import (
	"fmt"
	"maps"
	"slices"
)

// Refusal reports a part of the live configuration, usually a route, that is not served as configured, for example
// because Caddy rejected its handler chain.
type Refusal struct {
	// Host and Path identify the route. Path may be empty. Origin is the Kubernetes object that defines the route.
	Host, Path, Origin string
	Err                error
}

// refused is a route that is not served as configured. err is the reason. If err is nil, Caddy rejected the handler
// chain of the route, which returns 503 until Caddy accepts the chain.
type refused struct {
	route *Route
	err   error
}

func (g *group) refuse(r *Route, err error) {
	g.refused.Set(r.Host, append(g.refused.Get(r.Host), refused{r, err}))
}

// Refused returns all parts of the live configuration that are currently not served as configured. They are sorted, so
// that all replicas report them in the same order. Only the goroutine that changes the routing table may call Refused.
func (t *Table) Refused() []Refusal {
	all := t.group.appendRefused(nil)
	for _, name := range slices.Sorted(maps.Keys(t.groups)) {
		all = t.groups[name].appendRefused(all)
	}
	return all
}

func (g *group) appendRefused(all []Refusal) []Refusal {
	for _, name := range slices.Sorted(g.refused.Keys()) {
		for _, r := range g.refused.Get(name) {
			if err := r.why(); err != nil {
				all = append(all, Refusal{Host: name, Path: r.route.Path, Origin: r.route.Origin, Err: err})
			}
		}
	}
	return all
}

func (r *refused) why() error {
	refused := r.route.refused()
	if r.err != nil || refused == nil {
		return r.err
	}
	// The route stays in the routing table and returns 503. Otherwise the route for the next shorter path would serve
	// its requests, and might forward them to the same backend without the access rules of this route.
	return fmt.Errorf("requests get 503, because %w", refused)
}
