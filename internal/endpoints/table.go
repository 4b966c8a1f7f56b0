package endpoints

import (
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/split"
)

// Table holds the endpoints of all backends by ID. Its methods may be called from any goroutine.
//
// An ID has one *balancer.Backend for as long as anybody holds it, whether it was set, deleted or set again in the
// meantime: a route keeps the pointer, and sees every later list without a look-up.
type Table struct {
	mu sync.Mutex
	// set keeps the backends alive that were set or configured; known finds those too that only a route holds.
	set   map[string]*balancer.Backend
	known map[string]weak.Pointer[balancer.Backend]
}

// NewTable returns a table without backends.
func NewTable() *Table {
	return &Table{set: map[string]*balancer.Backend{}, known: map[string]weak.Pointer[balancer.Backend]{}}
}

// Backend returns the backend of an ID. One that was never set has no endpoints until it is.
func (t *Table) Backend(id string) *balancer.Backend {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.backend(id)
}

// Split returns the backends of connections, which share them by weight.
func (t *Table) Split(to document.StreamBackends) *split.Split[*balancer.Backend] {
	if len(to.Split) == 0 {
		return split.Only(t.Backend(to.Backend))
	}
	shares := make([]split.Share[*balancer.Backend], len(to.Split))
	for i, s := range to.Split {
		shares[i] = split.Share[*balancer.Backend]{To: t.Backend(s.Backend), Weight: s.Weight, Fallback: s.Fallback}
	}
	return split.New((*balancer.Backend).Empty, shares...)
}

// Set replaces the endpoints of a backend. A table that routes use has every backend set before the routes that refer
// to it are served, with an empty list if it has no endpoints.
func (t *Table) Set(id string, list []ir.Endpoint) {
	t.keep(id).SetEndpoints(list)
}

// Configure says how the endpoints of a backend are chosen; nil is round robin. A table that routes use has it said before
// the routes are served. What was said stays until the backend is let go of.
func (t *Table) Configure(id string, lb *ir.LoadBalancing) { t.keep(id).SetPolicy(lb) }

// keep returns the backend of an ID, and keeps it alive until Delete.
func (t *Table) keep(id string) *balancer.Backend {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.backend(id)
	t.set[id] = b
	return b
}

// Keep holds a backend as Set does, with the endpoints that it has. It is for one whose endpoints come later.
func (t *Table) Keep(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set[id] = t.backend(id)
}

// Delete lets go of a backend. Whoever still holds it keeps its last endpoints: requests that are on their way to it
// arrive.
func (t *Table) Delete(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.set, id)
}

// Addresses yields the addresses of the endpoints that the backends have which were set; one may come more than once.
func (t *Table) Addresses() iter.Seq[string] {
	return func(yield func(string) bool) {
		t.mu.Lock()
		all := slices.Collect(maps.Values(t.set))
		t.mu.Unlock()
		for _, b := range all {
			for _, e := range b.Endpoints() {
				if !yield(e.Address) {
					return
				}
			}
		}
	}
}

func (t *Table) backend(id string) *balancer.Backend {
	if b := t.known[id].Value(); b != nil {
		return b
	}
	b := balancer.New(id)
	pointer := weak.Make(b)
	t.known[id] = pointer
	runtime.AddCleanup(b, t.forget, known{id: id, pointer: pointer})
	return b
}

type known struct {
	id      string
	pointer weak.Pointer[balancer.Backend]
}

// forget removes an ID whose backend nobody holds any more, unless it has a new one.
func (t *Table) forget(k known) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[k.id] == k.pointer {
		delete(t.known, k.id)
	}
}
