package endpoints

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/k8singress/k8singress/internal/ir"
)

// Table holds the endpoints of all backends by ID. Its methods may be called from any goroutine.
//
// An ID has one *Backend for as long as anybody holds it, whether it was set, deleted or set again in the meantime: a
// route keeps the pointer, and sees every later list without a look-up.
type Table struct {
	mu sync.Mutex
	// set keeps the backends alive that have a list; known finds those too that only a route holds.
	set   map[string]*Backend
	known map[string]weak.Pointer[Backend]
}

// NewTable returns a table without backends.
func NewTable() *Table {
	return &Table{set: map[string]*Backend{}, known: map[string]weak.Pointer[Backend]{}}
}

// Backend returns the backend of an ID. One that was never set has no endpoints until it is.
func (t *Table) Backend(id string) *Backend {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.backend(id)
}

// Set replaces the endpoints of a backend. A table that routes use has every backend set before the routes that refer
// to it are served, with an empty list if it has no endpoints.
func (t *Table) Set(id string, list []ir.Endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.backend(id)
	t.set[id] = b
	if current := b.list.Load(); current == nil || !slices.Equal(*current, list) {
		own := slices.Clone(list)
		b.list.Store(&own)
	}
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

func (t *Table) backend(id string) *Backend {
	if b := t.known[id].Value(); b != nil {
		return b
	}
	b := &Backend{id: id}
	// The replicas of the controller should not all begin with the same endpoint.
	b.next.Store(rand.Uint64())
	pointer := weak.Make(b)
	t.known[id] = pointer
	runtime.AddCleanup(b, t.forget, known{id: id, pointer: pointer})
	return b
}

type known struct {
	id      string
	pointer weak.Pointer[Backend]
}

// forget removes an ID whose backend nobody holds any more, unless it has a new one.
func (t *Table) forget(k known) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[k.id] == k.pointer {
		delete(t.known, k.id)
	}
}

// Backend is the current endpoints of one backend. Its methods take no lock and allocate nothing.
type Backend struct {
	id   string
	list atomic.Pointer[[]ir.Endpoint]
	next atomic.Uint64
}

// ID returns the backend's ID, "namespace/service/port".
func (b *Backend) ID() string { return b.id }

// Endpoints returns the current list. Nobody may change it.
func (b *Backend) Endpoints() []ir.Endpoint {
	if list := b.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Ready says whether there is an endpoint that is not about to end.
func (b *Backend) Ready() bool {
	return slices.ContainsFunc(b.Endpoints(), func(e ir.Endpoint) bool { return !e.Terminating })
}

// Pick returns the address of the next endpoint, in turn. It passes over the addresses in tried, which have failed for
// this request, as long as there is another one. It returns false if there is no endpoint.
func (b *Backend) Pick(tried []string) (string, bool) {
	list := b.Endpoints()
	switch len(list) {
	case 0:
		return "", false
	case 1:
		return list[0].Address, true
	}
	first := int(b.next.Add(1) % uint64(len(list)))
	for i := range list {
		address := list[(first+i)%len(list)].Address
		if !slices.Contains(tried, address) {
			return address, true
		}
	}
	return list[first].Address, true
}

type contextKey struct{}

// WithTable returns a context with which Caddy modules are provisioned that need the table.
func WithTable(ctx context.Context, t *Table) context.Context {
	return context.WithValue(ctx, contextKey{}, t)
}

// FromContext returns the table of WithTable, or nil.
func FromContext(ctx context.Context) *Table {
	t, _ := ctx.Value(contextKey{}).(*Table)
	return t
}
