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

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/reach"
	"github.com/k8singress/k8singress/internal/upstream/split"
)

// Table holds the endpoints of all backends by ID. Its methods may be called from any goroutine.
//
// An ID keeps the same *balancer.Backend for as long as there is a reference to it, even if it is deleted and set
// again. A route keeps the pointer and sees every later list without a look-up.
type Table struct {
	mu sync.Mutex
	// set keeps the backends alive that were set or configured. known also finds backends that only a route refers to.
	set   map[string]*balancer.Backend
	known map[string]weak.Pointer[balancer.Backend]

	guard *reach.Guard
	// setting guards refused and quotas. It is held while endpoints are set, so that Sift and Set do not mix different
	// lists. refused holds the endpoints that are left out, by backend ID.
	setting sync.Mutex
	refused map[string][]Refused
	// quotas holds the quotas by namespace. setting guards it.
	quotas map[string]*quota
}

// Refused is an endpoint that is left out because connecting to its address is not allowed.
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

// Guard returns the guard that decides to which addresses connections are allowed. After changing it, call Sift.
func (t *Table) Guard() *reach.Guard { return t.guard }

// Backend returns the backend of an ID. A backend that was never set has no endpoints.
func (t *Table) Backend(id string) *balancer.Backend {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.backend(id)
}

// Split returns the backends of a TCP or UDP port, which share connections by weight.
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

// Set replaces the endpoints of a backend. Endpoints to which connections are not allowed, and endpoints over the quota
// of the namespace, are left out. Before routes are served, Set must be called for each of their backends, with an
// empty list if there are no endpoints.
func (t *Table) Set(id string, list []ir.Endpoint) {
	t.setting.Lock()
	defer t.setting.Unlock()
	t.sift(id, t.keep(id), t.admit(id, list))
}

// Sift checks the endpoints of all backends again. It must be called after the Guard has changed.
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

// sift sets the allowed endpoints of a list as the endpoints of a backend.
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

// overUDP is the suffix of the IDs of backends of UDP ports.
const overUDP = "/udp"

// judge returns the reason why an endpoint is left out, or "". A host name, which a handwritten document may contain,
// is checked when a connection is opened.
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

// AllRefused returns the endpoints of all backends that are left out, by backend ID.
func (t *Table) AllRefused() map[string][]Refused {
	t.setting.Lock()
	defer t.setting.Unlock()
	return maps.Clone(t.refused)
}

// Configure sets how the endpoints of a backend are chosen; nil means round robin. It must be called before the routes
// to the backend are served. The setting stays until the backend is released.
func (t *Table) Configure(id string, lb *ir.LoadBalancing) { t.keep(id).SetPolicy(lb) }

// keep returns the backend of an ID, and keeps it alive until Delete is called.
func (t *Table) keep(id string) *balancer.Backend {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.backend(id)
	t.set[id] = b
	return b
}

// Keep keeps a backend alive as Set does, but does not change its endpoints. It is for backends whose endpoints arrive
// later.
func (t *Table) Keep(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set[id] = t.backend(id)
}

// Delete releases a backend. Existing references keep its last endpoints, so that requests in flight can finish.
func (t *Table) Delete(id string) {
	t.setting.Lock()
	defer t.setting.Unlock()
	delete(t.refused, id)
	t.withdraw(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.set, id)
}

// Addresses yields the endpoint addresses of all backends that were set. An address may occur more than once.
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

// forget removes an ID whose backend has been garbage-collected, unless it has a new backend.
func (t *Table) forget(k known) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[k.id] == k.pointer {
		delete(t.known, k.id)
	}
}
