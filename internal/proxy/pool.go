package proxy

import (
	"cmp"
	"crypto/tls"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/reach"
)

// Pool keeps connections to endpoints for the next request. It outlives the routes and the configurations that use it. Its methods
// may be called from any goroutine.
type Pool struct {
	mu sync.Mutex
	// idle are the connections by where they lead, the one that was used last at the end; count is how many there are in all.
	// of counts them by namespace.
	idle  map[key][]*conn
	count int
	of    map[string]int
	// sweeps is set while somebody is going to look at them.
	sweeps *time.Timer
	closed bool
	// perAddress is how many idle connections to one address are kept, and idleTimeout for how long. keepsNone says that
	// perAddress is less than zero.
	keepsNone   atomic.Bool
	perAddress  int
	idleTimeout time.Duration
	// endpoints yields the addresses that requests may still go to; nil is that nobody knows.
	endpoints iter.Seq[string]
	// usual is how TLS and HTTP/2 are spoken where a route says nothing of it. Each request reads it, and it changes with the
	// configuration only.
	usual atomic.Pointer[generation]
	// guard decides which addresses are dialled, and descriptors how many connections there are.
	guard       *reach.Guard
	descriptors *descriptors
	// secured are for routes that say how TLS is spoken.
	secured map[way]*Secured
}

// key is where connections lead, for whom, and how. Those that differ in anything of it are never taken for each other. Two namespaces
// that have one address share no connection: what the requests of one leave on it would be the answers of the other.
type key struct {
	namespace, address string
	// secured is nil for connections without TLS.
	secured *generation
	// own is for services that may stand behind this process.
	own bool
}

const (
	// The defaults of ingress-nginx: upstream-keepalive-connections and upstream-keepalive-timeout.
	defaultPerAddress  = 320
	defaultIdleTimeout = 60 * time.Second
	// total is how many are kept in all: each is a file and some 10 KiB.
	total = 8192
	// generous is how many times as many as are free one namespace may have of them: one alone has eight ninths, and there is always room for
	// another one, as in package budget.
	generous = 8
	// sweepPeriod is how often those that nobody uses are looked at, and shortestPeriod the same where they are kept for less.
	sweepPeriod, shortestPeriod = 5 * time.Second, time.Second
)

// NewPool returns a pool without connections, which dials what the guard lets it.
func NewPool(guard *reach.Guard) *Pool {
	p := &Pool{
		guard: guard, descriptors: endpoints,
		idle: map[key][]*conn{}, of: map[string]int{}, secured: map[way]*Secured{},
	}
	p.Configure(0, 0)
	return p
}

// Configure says how many idle connections to one address are kept, less than zero none, and for how long. Zero is
// ingress-nginx's default: 320, and 60 seconds. Connections with requests on them stay.
func (p *Pool) Configure(perAddress int, idleTimeout time.Duration) {
	if p.configure(perAddress, idleTimeout) {
		for _, s := range p.everySecured() {
			s.forget()
		}
	}
}

// configure says whether that is another configuration.
func (p *Pool) configure(perAddress int, idleTimeout time.Duration) bool {
	p.mu.Lock()
	perAddress, idleTimeout = cmp.Or(perAddress, defaultPerAddress), cmp.Or(idleTimeout, defaultIdleTimeout)
	if p.perAddress == perAddress && p.idleTimeout == idleTimeout {
		p.mu.Unlock()
		return false
	}
	p.perAddress, p.idleTimeout = perAddress, idleTimeout
	p.keepsNone.Store(perAddress < 0)
	fresh := newGeneration(&tls.Config{
		// As ingress-nginx: an endpoint is verified when proxy-ssl-verify asks for it.
		InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}, perAddress, idleTimeout)
	old := p.usual.Swap(fresh)
	p.mu.Unlock()
	p.retire(old)
	return true
}

// Follow has the pool close idle connections to addresses that are not among these any more. It is to be called once, before
// the pool is used; the addresses are asked for every few seconds while there are idle connections. Where endpoints come and
// go all the time, what is kept for a minute would be most of the memory of the process.
func (p *Pool) Follow(endpoints iter.Seq[string]) { p.endpoints = endpoints }

// Close ends the idle connections, and keeps no others from now on.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.usual.Load().closeIdle()
	for _, s := range p.everySecured() {
		s.forget()
	}
	for _, c := range p.unused(time.Now()) {
		c.close()
	}
}

// take returns an idle connection on which nothing came in, the one that was used last; nil if there is none.
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
	list := p.idle[to]
	if len(list) == 0 {
		return nil
	}
	last := len(list) - 1
	c := list[last]
	list[last] = nil
	p.idle[to] = list[:last]
	p.counted(to, -1)
	return c
}

// counted adds to the number of idle connections, with the mutex held.
func (p *Pool) counted(to key, n int) {
	p.count += n
	if p.of[to.namespace] += n; p.of[to.namespace] == 0 {
		delete(p.of, to.namespace)
	}
}

// keep takes a connection back that is between two requests.
func (p *Pool) keep(c *conn) {
	unused := len(c.buffered()) > 0
	c.forget()
	if c.since = time.Now(); unused || !p.put(c, false) {
		c.close()
	}
}

// put returns false when there is no place. The connections of a key are in the order of their last use, so one that
// was only looked at goes to the front.
func (p *Pool) put(c *conn, front bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[c.key]
	if p.closed || c.key.secured.isRetired() || len(list) >= cmp.Or(c.most, p.perAddress) || !p.hasRoom(c.key.namespace) {
		return false
	}
	p.counted(c.key, 1)
	if front {
		p.idle[c.key] = slices.Insert(list, 0, c)
	} else {
		p.idle[c.key] = append(list, c)
	}
	if p.sweeps == nil {
		p.arm()
	}
	return true
}

// hasRoom says whether a namespace may have one more idle connection, with the mutex held.
func (p *Pool) hasRoom(namespace string) bool { return p.of[namespace] < generous*(total-p.count) }

// period is how often sweep comes, with the mutex held.
func (p *Pool) period() time.Duration { return min(sweepPeriod, max(shortestPeriod, p.idleTimeout)) }

// arm lets sweep come.
func (p *Pool) arm() {
	p.sweeps = panics.AfterFunc("proxy/sweep", p.period(), func() { p.sweep(time.Now()) })
}

// sweep closes what has been idle for too long, and what the endpoint has closed. It comes again as long as there is
// anything.
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

// gone returns the addresses of idle connections that no endpoint has. To walk over all endpoints here costs less than it
// would to keep account of them with each change.
func (p *Pool) gone() map[string]bool {
	if p.endpoints == nil {
		return nil
	}
	p.mu.Lock()
	gone := make(map[string]bool, len(p.idle))
	for to := range p.idle {
		gone[to.address] = true
	}
	p.mu.Unlock()
	for address := range p.endpoints {
		delete(gone, address)
	}
	return gone
}

// unused takes out what nobody has used for a while: nobody may find it while it is looked at.
func (p *Pool) unused(now time.Time) []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []*conn
	period := p.period()
	for to, list := range p.idle {
		if len(list) == 0 {
			delete(p.idle, to)
			continue
		}
		n := 0
		for n < len(list) && (p.closed || now.Sub(list[n].since) >= period) {
			n++
		}
		if n == 0 && len(list) > 0 {
			continue
		}
		// The oldest is put back last, and comes to the front.
		for i := n - 1; i >= 0; i-- {
			found = append(found, list[i])
		}
		p.counted(to, -n)
		if p.idle[to] = slices.Clone(list[n:]); n == len(list) {
			delete(p.idle, to)
		}
	}
	p.sweeps = nil
	if p.count > 0 && !p.closed {
		p.arm()
	}
	return found
}
