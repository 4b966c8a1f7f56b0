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
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/reach"
	"github.com/k8singress/k8singress/internal/upstream/split"
)

// Table holds the endpoints of all backends by ID. It is safe for concurrent use.
//
// The same *balancer.Backend is used for an ID as long as anything refers to it, even if the backend is deleted and set
// again. So a route can keep the pointer, and always sees the current endpoints without a lookup.
type Table struct {
	mu sync.Mutex
	// set holds the backends for which Set, Configure or Keep was called, and keeps them in memory. known also holds,
	// as weak pointers, the backends that only a route refers to.
	set   shrinking.Map[string, *balancer.Backend]
	known shrinking.Map[string, weak.Pointer[balancer.Backend]]

	guard *reach.Guard
	// setting guards refused and quotas. It is held while the endpoints of a backend are replaced, so that concurrent
	// calls of Sift and Set do not overwrite each other's result. refused maps the ID of a backend to its endpoints
	// that are not used because the Guard does not allow connections to them.
	setting sync.Mutex
	refused shrinking.Map[string, []Refused]
	// quotas maps each namespace to its quota. It is guarded by setting.
	quotas shrinking.Map[string, *quota]
}

// Refused is an endpoint that is not used because connections to its address are not allowed.
type Refused struct {
	ir.Endpoint
	Reason reach.Reason
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{guard: reach.NewGuard()} }

// Guard returns the Guard that decides to which addresses connections are allowed. After changing the Guard, call Sift.
func (t *Table) Guard() *reach.Guard { return t.guard }

// Backend returns the backend with the given ID. It has no endpoints until Set is called.
func (t *Table) Backend(id string) *balancer.Backend {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.backend(id)
}

// Split returns a Split that distributes the connections of a TCP or UDP port among its backends by weight.
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

// Set replaces the endpoints of a backend. It ignores endpoints to which connections are not allowed, and endpoints
// that exceed the quota of the namespace. Set must be called before requests are routed to the backend, even if the
// backend has no endpoints.
func (t *Table) Set(id string, list []ir.Endpoint) {
	t.setting.Lock()
	defer t.setting.Unlock()
	t.sift(id, t.keep(id), t.admit(id, list))
}

// Sift checks again, for the endpoints of all backends, whether connections to them are allowed. It must be called
// after the Guard has changed.
func (t *Table) Sift() {
	t.setting.Lock()
	defer t.setting.Unlock()
	t.mu.Lock()
	all := t.set.Clone()
	t.mu.Unlock()
	for id, b := range all.All() {
		list := b.Endpoints()
		if left := t.refused.Get(id); len(left) > 0 {
			list = slices.Clone(list)
			for i := range left {
				list = append(list, left[i].Endpoint)
			}
			slices.SortFunc(list, func(a, b ir.Endpoint) int { return cmp.Compare(a.Address, b.Address) })
		}
		t.sift(id, b, list)
	}
}

// sift sets the endpoints of a backend to the endpoints in list to which connections are allowed. It records the others
// in t.refused. The caller must hold t.setting.
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
	if len(left) > 0 {
		t.refused.Set(id, left)
	} else {
		t.refused.Delete(id)
	}
	b.SetEndpoints(allowed)
}

// overUDP is the suffix in the IDs of backends that get UDP datagrams.
const overUDP = "/udp"

// judge returns why connections to an endpoint are not allowed, or "" if they are allowed. It returns "" for a host
// name, because the addresses of the name are checked when a connection is opened. Only a configuration that was
// written by hand can contain host names.
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

// Refused returns the endpoints of a backend that are not used because connections to their addresses are not allowed.
func (t *Table) Refused(id string) []Refused {
	t.setting.Lock()
	defer t.setting.Unlock()
	return t.refused.Get(id)
}

// AllRefused returns, for each backend ID, the endpoints that are not used because connections to their addresses are
// not allowed.
func (t *Table) AllRefused() map[string][]Refused {
	t.setting.Lock()
	defer t.setting.Unlock()
	return maps.Collect(t.refused.All())
}

// Configure sets the load-balancing policy of a backend; nil means round robin. It must be called before requests are
// routed to the backend. The policy is kept until the backend is deleted and no route refers to it.
func (t *Table) Configure(id string, lb *ir.LoadBalancing) { t.keep(id).SetPolicy(lb) }

// keep returns the backend with the given ID, and keeps the backend in memory until Delete is called.
func (t *Table) keep(id string) *balancer.Backend {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.backend(id)
	t.set.Set(id, b)
	return b
}

// Keep keeps a backend in memory until Delete is called, without changing its endpoints. It is called if the endpoints
// are not known yet.
func (t *Table) Keep(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set.Set(id, t.backend(id))
}

// Delete removes a backend from the table. Routes that still refer to the backend continue to use its last endpoints,
// so that requests in flight can finish.
func (t *Table) Delete(id string) {
	t.setting.Lock()
	defer t.setting.Unlock()
	t.refused.Delete(id)
	t.withdraw(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set.Delete(id)
}

// Addresses yields the addresses of the endpoints of all backends for which Set, Configure or Keep was called. An
// address may occur more than once.
func (t *Table) Addresses() iter.Seq[string] {
	return func(yield func(string) bool) {
		t.mu.Lock()
		all := slices.Collect(t.set.Values())
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

// Ejected yields the ID of each backend with ejected endpoints, and their number.
func (t *Table) Ejected() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		t.mu.Lock()
		all := slices.Collect(t.set.Values())
		t.mu.Unlock()
		for _, b := range all {
			if n := b.Ejected(); n > 0 && !yield(b.ID(), n) {
				return
			}
		}
	}
}

// Endpoints yields the endpoints of all backends for which Set, Configure or Keep was called, except backends for UDP.
// It includes removed endpoints that still process requests. An address may occur more than once.
func (t *Table) Endpoints() iter.Seq[*balancer.Endpoint] {
	return func(yield func(*balancer.Endpoint) bool) {
		t.mu.Lock()
		all := slices.Collect(t.set.Values())
		t.mu.Unlock()
		for _, b := range all {
			if strings.HasSuffix(b.ID(), overUDP) {
				continue
			}
			for _, e := range b.InUse() {
				if !yield(e) {
					return
				}
			}
		}
	}
}

func (t *Table) backend(id string) *balancer.Backend {
	if b := t.known.Get(id).Value(); b != nil {
		return b
	}
	b := balancer.New(id)
	pointer := weak.Make(b)
	t.known.Set(id, pointer)
	runtime.AddCleanup(b, t.forget, known{id: id, pointer: pointer})
	return b
}

type known struct {
	id      string
	pointer weak.Pointer[balancer.Backend]
}

// forget removes a backend from t.known after the backend was garbage-collected. It does nothing if a new backend with
// the same ID was created in the meantime.
func (t *Table) forget(k known) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known.Get(k.id) == k.pointer {
		t.known.Delete(k.id)
	}
}
