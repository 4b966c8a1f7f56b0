package endpoints

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/reach"
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

	guard *reach.Guard
	// setting is held while endpoints are set, so that Sift meets no older list. It belongs to refused, too, which has those that are
	// left out, by the ID of the backend.
	setting sync.Mutex
	refused map[string][]Refused
	// quotas are by namespace, and belong to setting, too.
	quotas map[string]*quota
}

// Refused is an endpoint that is left out, because its address must not be dialled.
type Refused struct {
	ir.Endpoint
	Reason reach.Reason
}

// NewTable returns a table without backends.
func NewTable() *Table {
	return &Table{
		set: map[string]*balancer.Backend{}, known: map[string]weak.Pointer[balancer.Backend]{},
		guard: reach.NewGuard(), refused: map[string][]Refused{}, quotas: map[string]*quota{},
	}
}

// Guard decides which addresses are dialled. Whoever changes it calls Sift.
func (t *Table) Guard() *reach.Guard { return t.guard }

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
// to it are served, with an empty list if it has no endpoints. Those that must not be dialled are left out, and those
// that there is no room for in their namespace.
func (t *Table) Set(id string, list []ir.Endpoint) {
	t.setting.Lock()
	defer t.setting.Unlock()
	t.sift(id, t.keep(id), t.admit(id, list))
}

// Sift judges the endpoints of all backends again, because the Guard has changed.
func (t *Table) Sift() {
	t.setting.Lock()
	defer t.setting.Unlock()
	t.mu.Lock()
	all := maps.Clone(t.set)
	t.mu.Unlock()
	for id, b := range all {
		list := b.Endpoints()
		if left := t.refused[id]; len(left) > 0 {
			list = slices.Clone(list)
			for i := range left {
				list = append(list, left[i].Endpoint)
			}
			slices.SortFunc(list, func(a, b ir.Endpoint) int { return cmp.Compare(a.Address, b.Address) })
		}
		t.sift(id, b, list)
	}
}

// sift gives a backend the endpoints of a list that may be dialled.
func (t *Table) sift(id string, b *balancer.Backend, list []ir.Endpoint) {
	var left []Refused
	allowed := list
	for i := range list {
		reason := t.judge(id, list[i].Address)
		switch {
		case reason != "":
			if left == nil {
				allowed = slices.Clone(list[:i])
			}
			left = append(left, Refused{list[i], reason})
		case left != nil:
			allowed = append(allowed, list[i])
		}
	}
	if delete(t.refused, id); len(left) > 0 {
		t.refused[id] = left
	}
	b.SetEndpoints(allowed)
}

// overUDP ends the IDs of the backends of UDP ports.
const overUDP = "/udp"

// judge says why an endpoint is left out. A name, which a document may have that was written by hand, is judged when it is dialled.
func (t *Table) judge(id, address string) reach.Reason {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return ""
	}
	over := reach.TCP
	if strings.HasSuffix(id, overUDP) {
		over = reach.UDP
	}
	var refusal *reach.Refusal
	if errors.As(t.guard.Check(id, over, to), &refusal) {
		return refusal.Reason
	}
	return ""
}

// Refused returns the endpoints of a backend that are left out.
func (t *Table) Refused(id string) []Refused {
	t.setting.Lock()
	defer t.setting.Unlock()
	return t.refused[id]
}

// AllRefused returns those of all backends, by ID.
func (t *Table) AllRefused() map[string][]Refused {
	t.setting.Lock()
	defer t.setting.Unlock()
	return maps.Clone(t.refused)
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
	t.setting.Lock()
	defer t.setting.Unlock()
	delete(t.refused, id)
	t.withdraw(id)
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
