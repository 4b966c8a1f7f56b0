package proxy

import (
	"cmp"
	"crypto/tls"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// Pool keeps idle connections to endpoints for later requests. It outlives the routes and configurations that use it.
// It is safe for concurrent use.
type Pool struct {
	mu sync.Mutex
	// idle holds the idle connections for each key, sorted by their last use; the most recently used one is the last.
	// count is the total number of idle connections, and byNamespace is their number in each namespace.
	idle        shrinking.Map[key, []*conn]
	count       int
	byNamespace map[string]int
	// sweeps is the timer for the next call of sweep, which closes unusable idle connections. It is nil if no call is
	// scheduled.
	sweeps *time.Timer
	closed bool
	// perAddress is the maximum number of idle connections per key, and idleTimeout is how long they are kept.
	// keepsNone means that perAddress is negative: no connections are kept.
	keepsNone   atomic.Bool
	perAddress  int
	idleTimeout time.Duration
	// endpoints yields the addresses of all current endpoints. Nil means that they are unknown.
	endpoints iter.Seq[string]
	// defaultClient is the TLS and HTTP/2 configuration for routes that do not configure TLS. Each request reads it,
	// and only Configure replaces it.
	defaultClient atomic.Pointer[tlsClient]
	// guard decides to which addresses connections may be opened. descriptors limits the number of connections.
	guard       *reach.Guard
	descriptors *descriptors
	// secured holds one Secured for each TLS configuration that routes use for their endpoints.
	secured shrinking.Map[tlsKey, *Secured]
}

// key identifies connections that are interchangeable. Namespaces never share a connection, even to the same address:
// data that one namespace leaves on a connection could be taken for a response to the other.
type key struct {
	namespace, address string
	// secured is nil for connections without TLS.
	secured *tlsClient
	// own is true for connections to external services that this process itself may serve.
	own bool
}

const (
	// The defaults are ingress-nginx's: upstream-keepalive-connections and upstream-keepalive-timeout.
	defaultPerAddress  = 320
	defaultIdleTimeout = 60 * time.Second
	// maxIdle is the maximum number of idle connections. Each uses a file descriptor and about 10 KiB of memory.
	maxIdle = 8192
	// freePlacesFactor limits the number of idle connections of a namespace: it may be at most this many times the
	// number of idle connections that still fit into the pool. A single namespace can therefore use at most 8/9 of
	// maxIdle, so another namespace can always keep connections. Package budget uses the same rule.
	freePlacesFactor = 8
	// sweepPeriod is the interval between sweeps, which close idle connections that are no longer usable. If the idle
	// timeout is shorter, the interval is the idle timeout, but at least shortestPeriod.
	sweepPeriod, shortestPeriod = 5 * time.Second, time.Second
)

// NewPool returns an empty pool that dials only addresses that guard allows.
func NewPool(guard *reach.Guard) *Pool {
	p := &Pool{
		guard: guard, descriptors: endpoints, byNamespace: map[string]int{},
	}
	p.Configure(0, 0)
	return p
}

// Configure sets how many idle connections to one address are kept, and for how long. If perAddress is negative, no
// connections are kept. If a parameter is zero, ingress-nginx's default applies: 320 connections or 60 seconds.
// Requests in progress keep their connections.
func (p *Pool) Configure(perAddress int, idleTimeout time.Duration) {
	if p.configure(perAddress, idleTimeout) {
		for _, s := range p.allSecured() {
			s.reset()
		}
	}
}

// configure sets the limits of the pool: the number of idle connections per address and the idle timeout. It returns
// false if the pool already has these limits.
func (p *Pool) configure(perAddress int, idleTimeout time.Duration) bool {
	p.mu.Lock()
	perAddress, idleTimeout = cmp.Or(perAddress, defaultPerAddress), cmp.Or(idleTimeout, defaultIdleTimeout)
	if p.perAddress == perAddress && p.idleTimeout == idleTimeout {
		p.mu.Unlock()
		return false
	}
	p.perAddress, p.idleTimeout = perAddress, idleTimeout
	p.keepsNone.Store(perAddress < 0)
	fresh := newTLSClient(&tls.Config{
		// As in ingress-nginx, the certificates of endpoints are verified only if proxy-ssl-verify requests it.
		InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}, perAddress, idleTimeout)
	old := p.defaultClient.Swap(fresh)
	p.mu.Unlock()
	p.retire(old)
	return true
}

// SetEndpoints sets the source of the addresses of all current endpoints. The pool closes idle connections to other
// addresses. SetEndpoints must be called at most once, before the pool is used. While there are idle connections, the
// pool iterates over endpoints every few seconds. Without SetEndpoints, if endpoints change constantly, idle
// connections to removed endpoints can take up most of the memory of the process.
func (p *Pool) SetEndpoints(endpoints iter.Seq[string]) { p.endpoints = endpoints }

// Close closes the idle connections. After Close, connections are closed when their requests end.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.defaultClient.Load().closeIdle()
	for _, s := range p.allSecured() {
		s.reset()
	}
	for _, c := range p.unused(time.Now()) {
		c.close()
	}
}

// take removes the most recently used idle connection for a key from the pool and returns it, or returns nil if there
// is no usable connection. It closes connections that the endpoint has closed, and connections on which data has
// arrived.
func (p *Pool) take(to key) *conn {
	for {
		c := p.pop(to)
		if c == nil || c.quiet() {
			return c
		}
		c.close()
	}
}

func (p *Pool) pop(to key) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle.Get(to)
	if len(list) == 0 {
		return nil
	}
	last := len(list) - 1
	c := list[last]
	list[last] = nil
	p.idle.Set(to, list[:last])
	p.addIdle(to, -1)
	return c
}

// addIdle adds n to the total number of idle connections, and to the number of the key's namespace. The caller must
// hold p.mu.
func (p *Pool) addIdle(to key, n int) {
	p.count += n
	if p.byNamespace[to.namespace] += n; p.byNamespace[to.namespace] == 0 {
		delete(p.byNamespace, to.namespace)
	}
}

// keep puts a connection back into the pool after a request, or closes the connection if it cannot be reused.
func (p *Pool) keep(c *conn) {
	unused := len(c.buffered()) > 0
	c.forget()
	if c.since = time.Now(); unused || !p.put(c, false) {
		c.close()
	}
}

// put adds an idle connection to the pool. It returns false if the pool does not accept the connection, for example
// because it is full. The connections of a key are sorted by their last use. So if the connection was only inspected,
// and not used, front must be true: put then inserts it at the front.
func (p *Pool) put(c *conn, front bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle.Get(c.key)
	if p.closed || c.key.secured.isRetired() || len(list) >= cmp.Or(c.maxIdle, p.perAddress) ||
		!p.hasRoom(c.key.namespace) {
		return false
	}
	p.addIdle(c.key, 1)
	if front {
		p.idle.Set(c.key, slices.Insert(list, 0, c))
	} else {
		p.idle.Set(c.key, append(list, c))
	}
	if p.sweeps == nil {
		p.arm()
	}
	return true
}

// hasRoom reports whether a namespace may have one more idle connection. The caller must hold p.mu.
func (p *Pool) hasRoom(namespace string) bool {
	return p.byNamespace[namespace] < freePlacesFactor*(maxIdle-p.count)
}

// period returns the interval between sweeps. The caller must hold p.mu.
func (p *Pool) period() time.Duration { return min(sweepPeriod, max(shortestPeriod, p.idleTimeout)) }

// arm schedules the next call of sweep. The caller must hold p.mu.
func (p *Pool) arm() {
	p.sweeps = panics.AfterFunc("proxy/sweep", p.period(), func() { p.sweep(time.Now()) })
}

// sweep closes connections that have been idle for too long, connections that the endpoint has closed, and connections
// to endpoints that no longer exist. It calls p.unused, which schedules the next sweep as long as the pool has
// connections.
func (p *Pool) sweep(now time.Time) {
	p.mu.Lock()
	idleTimeout := p.idleTimeout
	p.mu.Unlock()
	gone := p.gone()
	for _, c := range p.unused(now) {
		if gone[c.key.address] || now.Sub(c.since) >= cmp.Or(c.lifetime, idleTimeout) || !c.quiet() || !p.put(c, true) {
			c.close()
		}
	}
}

// gone returns the addresses of idle connections that do not belong to any current endpoint. Iterating over all
// endpoints here is cheaper than tracking each change.
func (p *Pool) gone() map[string]bool {
	if p.endpoints == nil {
		return nil
	}
	p.mu.Lock()
	gone := make(map[string]bool, p.idle.Len())
	for to := range p.idle.Keys() {
		gone[to.address] = true
	}
	p.mu.Unlock()
	for address := range p.endpoints {
		delete(gone, address)
	}
	return gone
}

// unused removes from the pool all connections that have been idle for at least one sweep interval, and returns them.
// No request can use them while sweep inspects them. If the pool is closed, unused removes and returns all connections.
func (p *Pool) unused(now time.Time) []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []*conn
	period := p.period()
	for to, list := range p.idle.All() {
		if len(list) == 0 {
			p.idle.Delete(to)
			continue
		}
		n := 0
		for n < len(list) && (p.closed || now.Sub(list[n].since) >= period) {
			n++
		}
		if n == 0 && len(list) > 0 {
			continue
		}
		// Add the connections in reverse order: sweep puts each one back at the front of p.idle[to], where the
		// connection that has been idle for the longest time must come first.
		for i := n - 1; i >= 0; i-- {
			found = append(found, list[i])
		}
		p.addIdle(to, -n)
		if n == len(list) {
			p.idle.Delete(to)
		} else {
			p.idle.Set(to, slices.Clone(list[n:]))
		}
	}
	p.sweeps = nil
	if p.count > 0 && !p.closed {
		p.arm()
	}
	return found
}
