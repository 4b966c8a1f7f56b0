package live

import (
	"fmt"
	"maps"
	"slices"
)

// Refusal is a part of a document that is not served. Everything else is.
type Refusal struct {
	// Host and Path say where it stands, Origin which object it comes from. There may be no path.
	Host, Path, Origin string
	Err                error
}

// refused is a route that is left out because of err, or closed because its chain is refused. That may change with the
// chain.
type refused struct {
	route *Route
	err   error
}

func (g *group) refuse(r *Route, err error) {
	g.refused[r.Host] = append(g.refused[r.Host], refused{r, err})
}

// Refused returns what is not served at present, in the order of hosts and their routes, so that all replicas report alike.
// It is for the goroutine that changes the table.
func (t *Table) Refused() []Refusal {
	all := t.group.appendRefused(nil)
	for _, name := range slices.Sorted(maps.Keys(t.groups)) {
		all = t.groups[name].appendRefused(all)
	}
	return all
}

func (g *group) appendRefused(all []Refusal) []Refusal {
	for _, name := range slices.Sorted(maps.Keys(g.refused)) {
		for _, r := range g.refused[name] {
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
	// Without a route, its requests would go to the one with the next shorter path, which may lead to the same backend and not
	// have what keeps them out here.
	return fmt.Errorf("requests get 503, because %w", refused)
}
