package proxy

import (
	"context"
	"net"
	"sync"
	"time"
)

// Pool keeps connections to endpoints for the next request. It outlives the routes and the Caddy configurations that use
// it. Its methods may be called from any goroutine.
type Pool struct {
	dialer net.Dialer

	mu     sync.Mutex
	idle   map[string][]*conn
	sweeps *time.Timer
	closed bool
}

const (
	// perAddress is how many idle connections to one address are kept, and idleTimeout for how long: ingress-nginx's
	// upstream-keepalive-connections and upstream-keepalive-timeout.
	perAddress  = 320
	idleTimeout = 60 * time.Second
)

// NewPool returns a pool without connections.
func NewPool() *Pool { return &Pool{idle: map[string][]*conn{}} }

// Close ends the idle connections, and keeps no others from now on.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.sweep(time.Now().Add(idleTimeout))
}

// take returns an idle connection on which nothing came in, the one that was used last; nil if there is none.
func (p *Pool) take(address string) *conn {
	for {
		c := p.pop(address)
		if c == nil || c.quiet() {
			return c
		}
		c.close()
	}
}

func (p *Pool) pop(address string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[address]
	if len(list) == 0 {
		return nil
	}
	last := len(list) - 1
	c := list[last]
	list[last] = nil
	p.idle[address] = list[:last]
	return c
}

// dial opens a new connection.
func (p *Pool) dial(ctx context.Context, address string, timeout time.Duration) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	socket, err := p.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return newConn(socket, address), nil
}

// keep takes a connection back that is between two requests.
func (p *Pool) keep(c *conn) {
	c.since = time.Now()
	p.mu.Lock()
	list := p.idle[c.address]
	full := p.closed || len(list) >= perAddress
	if !full {
		p.idle[c.address] = append(list, c)
		p.schedule()
	}
	p.mu.Unlock()
	if full {
		c.close()
	}
}

// schedule makes sure that somebody looks for connections that have been idle for too long. p.mu is held.
func (p *Pool) schedule() {
	if p.sweeps == nil {
		p.sweeps = time.AfterFunc(idleTimeout, func() { p.sweep(time.Now()) })
	}
}

// sweep closes what has been idle for too long. It comes again as long as there is anything.
func (p *Pool) sweep(now time.Time) {
	var old []*conn
	p.mu.Lock()
	for address, list := range p.idle {
		// The one that was used last is at the end.
		n := 0
		for n < len(list) && now.Sub(list[n].since) >= idleTimeout {
			n++
		}
		old = append(old, list[:n]...)
		if n == len(list) {
			delete(p.idle, address)
			continue
		}
		p.idle[address] = append([]*conn(nil), list[n:]...)
	}
	p.sweeps = nil
	if len(p.idle) > 0 {
		p.schedule()
	}
	p.mu.Unlock()
	for _, c := range old {
		c.close()
	}
}
