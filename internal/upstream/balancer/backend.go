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

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// goneTime is how long the statistics and health of a removed endpoint are kept, in case its address is added again. It
// equals the maximum time for which an endpoint is ejected.
const goneTime = longestEjection

// Backend holds the endpoints of one backend and chooses one of them for each request. It is safe for concurrent use.
type Backend struct {
	id, namespace string

	state atomic.Pointer[state]
	// turn is the round-robin counter.
	turn atomic.Uint64
	// slowUntil is the time until which at least one endpoint is in slow start. Zero means that no endpoint is in slow
	// start.
	slowUntil atomic.Int64
	// out is the number of endpoints that are ejected or unhealthy. nextTrial is the earliest time at which an ejected
	// endpoint may get a trial request, which tests whether the endpoint has recovered.
	out       atomic.Int32
	nextTrial atomic.Int64
	// now returns the current time in nanoseconds. It is never zero.
	now func() int64

	// mu must be held to change the state or the health of endpoints.
	mu sync.Mutex
	// gone maps addresses to removed endpoints, whose statistics are kept for goneTime. swept is the time when gone was
	// last searched for expired endpoints.
	gone    map[string]*Endpoint
	swept   int64
	ejected int
	// round is incremented each time the list of endpoints is replaced. Endpoint.round is set to this value for the
	// endpoints in the new list; endpoints with an older value were removed.
	round uint32
}

// state holds the endpoints and the policy that Pick reads. It is immutable.
type state struct {
	list      []ir.Endpoint
	endpoints []*Endpoint
	policy    *policy
	// ring is the consistent hash ring. byLabel maps the string that identifies an endpoint in session cookies to the
	// endpoint. Both are nil unless the policy needs them.
	ring    *ring
	byLabel map[string]*Endpoint
}

// policy is the parsed form of ir.LoadBalancing.
type policy struct {
	ir.LoadBalancing
	// hashBy is the parsed template of the hash key, or nil if requests are not hashed.
	hashBy *nginx.Template
	// tag identifies this backend in its session cookies. A cookie's value ends with it.
	tag string
	// clients remembers which endpoint each client uses. It is nil if the Service has no session affinity.
	clients *clients
}

var (
	roundRobin = &policy{}
	epoch      = time.Now().Add(-time.Hour)
)

// New returns a backend without endpoints that uses round robin.
func New(id string) *Backend {
	namespace, _, _ := strings.Cut(id, "/")
	b := &Backend{id: id, namespace: namespace, now: func() int64 { return int64(time.Since(epoch)) }}
	// Start at a random position, so that the replicas of the controller do not all start with the same endpoint.
	b.turn.Store(rand.Uint64())
	b.state.Store(&state{policy: roundRobin})
	return b
}

// ID returns the backend's ID, "namespace/service/port".
func (b *Backend) ID() string { return b.id }

// Namespace returns the namespace of the backend.
func (b *Backend) Namespace() string { return b.namespace }

// Endpoints returns the current list of endpoints. The caller must not change it.
func (b *Backend) Endpoints() []ir.Endpoint { return b.state.Load().list }

// InUse returns the current endpoints, and the removed endpoints that still process requests.
func (b *Backend) InUse() []*Endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.state.Load().endpoints)
	for _, e := range b.gone {
		if e.InFlight() > 0 {
			all = append(all, e)
		}
	}
	return all
}

// Empty reports whether the backend has no endpoints.
func (b *Backend) Empty() bool { return len(b.Endpoints()) == 0 }

// Ready reports whether at least one endpoint is not terminating.
func (b *Backend) Ready() bool {
	return slices.ContainsFunc(b.Endpoints(), func(e ir.Endpoint) bool { return !e.Terminating })
}

// SetEndpoints replaces the endpoints with a copy of list. Endpoints whose address is also in the new list keep their
// statistics and health.
func (b *Backend) SetEndpoints(list []ir.Endpoint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.state.Load()
	if slices.Equal(old.list, list) {
		return
	}
	all, added := b.adopt(old.endpoints, list)
	b.publish(&state{list: slices.Clone(list), endpoints: all, policy: old.policy, ring: old.ring,
		byLabel: old.byLabel}, added)
}

// adopt returns the endpoints for a new list, without duplicate addresses. It reuses the current endpoints, which are
// in old. The result added contains only the endpoints that are not in old.
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

// come returns the endpoint for an address that was added to the backend's list. If the address was removed from the
// list recently, it returns the previous endpoint, with its statistics and health. Otherwise it returns a new endpoint.
func (b *Backend) come(address string, old []*Endpoint, now int64) *Endpoint {
	if e := b.gone[address]; e != nil {
		delete(b.gone, address)
		return e
	}
	e := &Endpoint{address: address, backend: b}
	e.latency.start(now, meanLatency(old, now))
	return e
}

// retire moves the endpoints that are no longer in the backend's list to b.gone. An endpoint stays in b.gone for
// goneTime, or longer if it still has requests in flight.
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
	// gone can become large if endpoints change often, so it is not searched for old entries after each change.
	if now-b.swept >= int64(goneTime/8) {
		b.swept = now
		maps.DeleteFunc(b.gone, func(_ string, e *Endpoint) bool {
			return e.InFlight() == 0 &&
				now-e.goneAt >= int64(goneTime)
		})
	}
}

// finder finds the current endpoint for each address of a new list. If both lists of endpoints, the current and the new
// one, are sorted, finder needs no map. Lists from EndpointSlices are sorted.
type finder struct {
	sorted    []*Endpoint
	byAddress map[string]*Endpoint
	last      *Endpoint
}

// newFinder returns a finder for the endpoints in old. The caller must look up the addresses of list in the order of
// list.
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

// add adds a new endpoint to the finder, so that the same endpoint is found again if the list contains its address
// twice.
func (f *finder) add(e *Endpoint) {
	if f.byAddress != nil {
		f.byAddress[e.address] = e
	}
	f.last = e
}

// join starts the slow start of a new endpoint. If the backend had no other endpoints, there is no slow start, because
// no other endpoint could take the requests.
func (e *Endpoint) join(now int64, others bool) {
	if !others {
		now = 0
	}
	e.since.Store(now)
}

// meanLatency returns the mean latency of the endpoints. New endpoints start with this latency: if they started with
// zero, they would get all requests at first.
func meanLatency(endpoints []*Endpoint, now int64) float64 {
	sum := 0.0
	for _, e := range endpoints {
		sum += e.latency.read(now)
	}
	return sum / float64(max(len(endpoints), 1))
}

// SetPolicy sets the policy for choosing endpoints; nil means round robin. The caller must not change lb afterwards. An
// invalid HashBy template is ignored.
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
	next := &state{list: old.list, endpoints: old.endpoints, policy: b.newPolicy(lb, old.policy), ring: old.ring,
		byLabel: old.byLabel}
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
		p.hashBy, _ = nginx.ParseTemplate(p.HashBy, nil)
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

// publish makes next the current state. The caller must have copied the ring and the session labels from the old state
// to next. Before next becomes current, publish updates them: it removes the endpoints that are no longer listed, and
// adds the endpoints in added.
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

// labels returns the map byLabel for the state next, which is used to find the endpoint in a session cookie. It returns
// nil if the backend has no persistent session cookies.
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
