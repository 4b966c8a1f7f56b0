package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/process/budget"
)

// descriptors limits the number of file descriptors that are used for one purpose, such as connections to endpoints. It
// divides them between the namespaces. The clients of one namespace can send any number of requests on a few HTTP/2 or
// HTTP/3 connections, and each request may need a connection to an endpoint and a temporary file for a long time.
// Without the limit per namespace, one namespace could use up the file descriptors that other requests and new clients
// need.
type descriptors struct {
	// budget returns the budget of file descriptors, which the first call creates.
	budget func() *budget.Budget
	// full is the error that is returned if no file descriptor is available. refused is the number of requests or
	// bodies that got no file descriptor.
	full    error
	refused atomic.Int64
}

var errNoConnection = errors.New("the namespace has reached its limit of connections to endpoints: " +
	"raise the limit of open files, or start more replicas")

// Each variable limits the file descriptors for one purpose: endpoints for connections to endpoints, calls for
// connections to external services, and bodyFiles for temporary files with bodies. endpoints and bodyFiles are divided
// between the namespaces of the backends. calls is divided between the namespaces of the Ingresses.
var (
	endpoints = &descriptors{
		budget: sync.OnceValue(budget.Endpoints.Budget),
		full:   exchange.Fail(http.StatusServiceUnavailable, errNoConnection),
	}
	calls     = &descriptors{budget: sync.OnceValue(budget.Calls.Budget), full: callout.ErrBusy}
	bodyFiles = &descriptors{budget: sync.OnceValue(budget.BodyFiles.Budget), full: errNoRoom}
)

// d.of(namespace) returns the namespace's share of the budget of file descriptors.
func (d *descriptors) of(namespace string) *budget.Share { return d.budget().Share(namespace, "") }

// refuse counts a request or body that got no file descriptor, and returns the error for it.
func (d *descriptors) refuse() error {
	d.refused.Add(1)
	return d.full
}

func (d *descriptors) usage() budget.Usage {
	u := d.budget().Usage()
	u.Refused = d.refused.Load()
	return u
}

// descriptor reserves one file descriptor for a namespace. It returns the share of the budget to which the caller must
// return the file descriptor with Give(1). If the namespace has reached its limit, descriptor closes idle connections
// of the namespace until the reservation succeeds. If spare is true, the reservation also fails if more than half of
// the whole budget would be in use, so that the rest is left for other requests.
func (p *Pool) descriptor(namespace string, spare bool) (*budget.Share, error) {
	share := p.descriptors.of(namespace)
	take := share.Take
	if spare {
		take = share.TakeSpare
	}
	for !take(1) {
		if !p.closeOneIdle(namespace) {
			return nil, p.descriptors.refuse()
		}
	}
	return share, nil
}

// reuse returns an idle connection from the pool, or nil if there is no idle connection for the key. If spare is true,
// it also returns nil if more than half of the file descriptors in the budget are in use, because the rest is left for
// other requests.
func (p *Pool) reuse(to key, spare bool) *conn {
	if spare && !p.descriptors.budget().HasSpare() {
		return nil
	}
	return p.take(to)
}

// closeOneIdle closes an idle connection of a namespace. It returns false if the namespace has no idle connection.
func (p *Pool) closeOneIdle(namespace string) bool {
	c := p.anyIdle(namespace)
	if c == nil {
		return false
	}
	c.close()
	return true
}

// anyIdle removes an idle connection of a namespace from the pool and returns it. It picks an arbitrary endpoint, and
// the connection to that endpoint that has been idle for the longest time. It returns nil if the namespace has no idle
// connection.
func (p *Pool) anyIdle(namespace string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byNamespace[namespace] == 0 {
		return nil
	}
	for to, list := range p.idle.All() {
		if to.namespace != namespace || len(list) == 0 {
			continue
		}
		c := list[0]
		list[0] = nil
		p.idle.Set(to, list[1:])
		p.addIdle(to, -1)
		return c
	}
	return nil
}

// openAccounted is like open, but the caller does not have to return the file descriptor to the budget share: closing
// the connection does so.
func (d *dialer) openAccounted(ctx context.Context, address string, config *tls.Config) (net.Conn, error) {
	share, err := d.pool.descriptor(d.namespace, d.spare)
	if err != nil {
		return nil, dialFailed{err}
	}
	give := sync.OnceFunc(func() { share.Give(1) })
	// Wrap the TCP connection below TLS, because net/http needs to see the TLS connection itself.
	conn, err := d.dial(ctx, address, config, func(socket net.Conn) net.Conn { return &accountedConn{socket, give} })
	if err != nil {
		give()
	}
	return conn, err
}

type accountedConn struct {
	net.Conn
	give func()
}

// Close closes the connection. The first call also returns the file descriptor to the budget share.
func (l *accountedConn) Close() error {
	defer l.give()
	return l.Conn.Close()
}
