package balancer

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
)

// goneTime is how long an endpoint is remembered that has left the list: as long as it may be ejected.
const goneTime = longestEjection

// Backend is the endpoints of one backend, and how one of them is chosen. Its methods may be called from any goroutine.
type Backend struct {
	id, namespace string

	state atomic.Pointer[state]
	// turn is for round robin.
	turn atomic.Uint64
	// slowUntil is when the last endpoint that starts slowly has its full share; zero is that all have.
	slowUntil atomic.Int64
	// out counts the endpoints that are ejected or unhealthy; nextTrial is when the first of the ejected is to be tried.
	out       atomic.Int32
	nextTrial atomic.Int64
	// now is in nanoseconds, and never zero.
	now func() int64

	// mu is for whoever changes state or the health of an endpoint.
	mu sync.Mutex
	// gone are endpoints that have left the list, by address, and swept is when those that may be forgotten were.
	gone    map[string]*Endpoint
	swept   int64
	ejected int
	// round counts the lists.
	round uint32
}

// state is what a choice reads. It is immutable.
type state struct {
	list      []ir.Endpoint
	endpoints []*Endpoint
	policy    *policy
	// ring and byLabel are there if the policy needs them.
	ring    *ring
	byLabel map[string]*Endpoint
}

// policy is ir.LoadBalancing, read.
type policy struct {
	ir.LoadBalancing
	// hashBy is nil if there is nothing to hash.
	hashBy *nginx.Template
	// tag ends the session cookies of this backend.
	tag string
	// clients is nil without Service session affinity.
	clients *clients
}

var (
	roundRobin = &policy{}
	epoch      = time.Now().Add(-time.Hour)
)

// New returns a backend without endpoints that takes them in turn.
func New(id string) *Backend {
	namespace, _, _ := strings.Cut(id, "/")
	b := &Backend{id: id, namespace: namespace, now: func() int64 { return int64(time.Since(epoch)) }}
	// The replicas of the controller should not all begin with the same endpoint.
	b.turn.Store(rand.Uint64())
	b.state.Store(&state{policy: roundRobin})
	return b
}

// ID returns the backend's ID, "namespace/service/port".
func (b *Backend) ID() string { return b.id }

// Namespace returns the one of the backend.
func (b *Backend) Namespace() string { return b.namespace }

// Endpoints returns the current list. Nobody may change it.
func (b *Backend) Endpoints() []ir.Endpoint { return b.state.Load().list }

// Empty says whether there is no endpoint.
func (b *Backend) Empty() bool { return len(b.Endpoints()) == 0 }

// Ready says whether there is an endpoint that is not about to end.
func (b *Backend) Ready() bool {
	return slices.ContainsFunc(b.Endpoints(), func(e ir.Endpoint) bool { return !e.Terminating })
}

// SetEndpoints replaces the list, and takes a copy of it. What is known of an address stays.
func (b *Backend) SetEndpoints(list []ir.Endpoint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.state.Load()
	if slices.Equal(old.list, list) {
		return
	}
	all, added := b.adopt(old.endpoints, list)
	b.publish(&state{list: slices.Clone(list), endpoints: all, policy: old.policy, ring: old.ring, byLabel: old.byLabel}, added)
}

// adopt returns the endpoints of a list, each address once, and those of them that were not there before.
func (b *Backend) adopt(old []*Endpoint, list []ir.Endpoint) (all, added []*Endpoint) {
	now, known := b.now(), newFinder(old, list)
	b.round++
	all = make([]*Endpoint, 0, len(list))
	for i := range list {
		e := known.find(list[i].Address)
		if e == nil {
			e = b.come(list[i].Address, old, now)
			known.add(e)
		}
		if e.round == b.round {
			continue
		}
		e.round = b.round
		all = append(all, e)
		if !e.listed.Swap(true) {
			added = append(added, e)
			e.join(now, len(old) > 0)
		}
	}
	b.retire(old, now)
	return all, added
}

// come returns the endpoint of an address that was not in the list, with what is still known of it.
func (b *Backend) come(address string, old []*Endpoint, now int64) *Endpoint {
	if e := b.gone[address]; e != nil {
		delete(b.gone, address)
		return e
	}
	e := &Endpoint{address: address, backend: b}
	e.latency.start(now, meanLatency(old, now))
	return e
}

// retire keeps what is known of endpoints that have gone for a while, and while requests are under way to them.
func (b *Backend) retire(old []*Endpoint, now int64) {
	for _, e := range old {
		if e.round == b.round {
			continue
		}
		e.listed.Store(false)
		e.goneAt = now
		if b.gone == nil {
			b.gone = map[string]*Endpoint{}
		}
		b.gone[e.address] = e
	}
	// Where endpoints change all the time there are many, and not every change need look at them all.
	if now-b.swept >= int64(goneTime/8) {
		b.swept = now
		maps.DeleteFunc(b.gone, func(_ string, e *Endpoint) bool { return e.InFlight() == 0 && now-e.goneAt >= int64(goneTime) })
	}
}

// finder finds endpoints by their addresses. Lists come sorted from EndpointSlices, and need no map then.
type finder struct {
	sorted    []*Endpoint
	byAddress map[string]*Endpoint
	last      *Endpoint
}

// newFinder finds what is in old, for somebody who asks for the addresses of a list in its order.
func newFinder(old []*Endpoint, list []ir.Endpoint) *finder {
	if slices.IsSortedFunc(old, func(a, b *Endpoint) int { return strings.Compare(a.address, b.address) }) &&
		slices.IsSortedFunc(list, func(a, b ir.Endpoint) int { return strings.Compare(a.Address, b.Address) }) {
		return &finder{sorted: old}
	}
	f := &finder{byAddress: make(map[string]*Endpoint, len(old))}
	for _, e := range old {
		f.byAddress[e.address] = e
	}
	return f
}

func (f *finder) find(address string) *Endpoint {
	if f.byAddress != nil {
		return f.byAddress[address]
	}
	if f.last != nil && f.last.address == address {
		return f.last
	}
	for len(f.sorted) > 0 && f.sorted[0].address < address {
		f.sorted = f.sorted[1:]
	}
	if len(f.sorted) > 0 && f.sorted[0].address == address {
		return f.sorted[0]
	}
	return nil
}

// add lets an endpoint be found that was not there: a list may have its address twice.
func (f *finder) add(e *Endpoint) {
	if f.byAddress != nil {
		f.byAddress[e.address] = e
	}
	f.last = e
}

// join notes when an endpoint came. The first ones of a backend have nobody who could take their share meanwhile.
func (e *Endpoint) join(now int64, others bool) {
	if !others {
		now = 0
	}
	e.since.Store(now)
}

// meanLatency is where new endpoints start: from zero they would get everything at once.
func meanLatency(endpoints []*Endpoint, now int64) float64 {
	sum := 0.0
	for _, e := range endpoints {
		sum += e.latency.read(now)
	}
	return sum / float64(max(len(endpoints), 1))
}

// SetPolicy says how endpoints are chosen from now on; nil is round robin. Nobody may change it afterwards. A HashBy that
// is no template is none.
func (b *Backend) SetPolicy(lb *ir.LoadBalancing) {
	if lb == nil {
		lb = &roundRobin.LoadBalancing
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.state.Load()
	if reflect.DeepEqual(&old.policy.LoadBalancing, lb) {
		return
	}
	next := &state{list: old.list, endpoints: old.endpoints, policy: b.newPolicy(lb, old.policy), ring: old.ring, byLabel: old.byLabel}
	if next.policy.ejectAfter() < 0 {
		for _, e := range old.endpoints {
			e.forgive()
		}
	}
	b.publish(next, nil)
}

func (b *Backend) newPolicy(lb *ir.LoadBalancing, old *policy) *policy {
	p := &policy{LoadBalancing: *lb}
	if p.Policy == ir.PolicyHash && p.HashBy != "" {
		p.hashBy, _ = nginx.ParseTemplate(p.HashBy)
	}
	if p.SessionCookie != nil {
		p.tag = label(b.id, "")
	}
	if p.ClientIP > 0 {
		if p.clients = old.clients; p.clients == nil {
			p.clients = &clients{}
		}
	}
	return p
}

// publish lets requests see a state whose ring and labels are still those before.
func (b *Backend) publish(next *state, added []*Endpoint) {
	switch {
	case next.policy.hashBy == nil && next.policy.SessionCookie == nil:
		next.ring = nil
	case next.ring == nil:
		next.ring = newRing(next.endpoints)
	default:
		next.ring = next.ring.with(added)
	}
	next.byLabel = b.labels(next, added)
	b.state.Store(next)
	b.recount(next)
	b.slowUntil.Store(next.slowUntil())
}

// labels is what cookies call the endpoints, where they do.
func (b *Backend) labels(next *state, added []*Endpoint) map[string]*Endpoint {
	if s := next.policy.SessionCookie; s == nil || !s.Persistent {
		return nil
	}
	labels := maps.Clone(next.byLabel)
	if labels == nil {
		labels, added = make(map[string]*Endpoint, len(next.endpoints)), next.endpoints
	}
	maps.DeleteFunc(labels, func(_ string, e *Endpoint) bool { return !e.listed.Load() })
	for _, e := range added {
		labels[label(b.id, e.address)] = e
	}
	return labels
}

func (s *state) slowUntil() int64 {
	var until int64
	if s.policy.SlowStart <= 0 {
		return 0
	}
	for _, e := range s.endpoints {
		if since := e.since.Load(); since != 0 {
			until = max(until, since+int64(s.policy.SlowStart))
		}
	}
	return until
}
