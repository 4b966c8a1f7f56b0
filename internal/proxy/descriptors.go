package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/callout"
	"github.com/k8singress/k8singress/internal/exchange"
)

// descriptors is one use of file descriptors, which namespaces share. Clients of one namespace have any number of
// requests on few connections of HTTP/2 or HTTP/3. Each request may need a connection to an endpoint, and a file, and
// keep it for long. Without shares there would be no descriptor left for the requests of others, nor for new clients.
type descriptors struct {
	// budget is made with the first request.
	budget func() *budget.Budget
	// full is the error without a descriptor. refused counts the requests or bodies that got none.
	full    error
	refused atomic.Int64
}

var errNoConnection = errors.New("the backends of the namespace have as many connections to endpoints as they may " +
	"have: raise the limit of open files, or start more replicas")

// The uses of descriptors. Namespaces are those of the backends for endpoints and bodyFiles, and those of the
// Ingresses for calls.
var (
	endpoints = &descriptors{
		budget: sync.OnceValue(budget.Endpoints.Budget),
		full:   exchange.Fail(http.StatusServiceUnavailable, errNoConnection),
	}
	calls     = &descriptors{budget: sync.OnceValue(budget.Calls.Budget), full: callout.ErrBusy}
	bodyFiles = &descriptors{budget: sync.OnceValue(budget.BodyFiles.Budget), full: errNoRoom}
)

// of returns the account of a namespace.
func (d *descriptors) of(namespace string) *budget.Share { return d.budget().Share(namespace, "") }

// refuse counts a request or a body that gets no descriptor, and returns its error.
func (d *descriptors) refuse() error {
	d.refused.Add(1)
	return d.full
}

func (d *descriptors) usage() budget.Usage {
	u := d.budget().Usage()
	u.Refused = d.refused.Load()
	return u
}

// descriptor takes a descriptor from the account of a namespace, which the caller gives it back to. Idle connections
// of the namespace make room. With spare set, half of all descriptors are left to others.
func (p *Pool) descriptor(namespace string, spare bool) (*budget.Share, error) {
	share := p.descriptors.of(namespace)
	take := share.Take
	if spare {
		take = share.TakeSpare
	}
	for !take(1) {
		if !p.makeRoom(namespace) {
			return nil, p.descriptors.refuse()
		}
	}
	return share, nil
}

// reuse returns an idle connection, or nil if there is none. With spare set, half of all descriptors are left to
// others.
func (p *Pool) reuse(to key, spare bool) *conn {
	if spare && !p.descriptors.budget().HasSpare() {
		return nil
	}
	return p.take(to)
}

// makeRoom closes an idle connection of a namespace. It returns false if there is none.
func (p *Pool) makeRoom(namespace string) bool {
	c := p.anyIdle(namespace)
	if c == nil {
		return false
	}
	c.close()
	return true
}

// anyIdle takes out the connection to one of the endpoints that has been idle for the longest time, or returns nil.
func (p *Pool) anyIdle(namespace string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[namespace] == 0 {
		return nil
	}
	for to, list := range p.idle {
		if to.namespace != namespace || len(list) == 0 {
			continue
		}
		c := list[0]
		list[0] = nil
		p.idle[to] = list[1:]
		p.counted(to, -1)
		return c
	}
	return nil
}

// lend is open for those who know of no share: the descriptor goes back when the connection is closed.
func (d *dialing) lend(ctx context.Context, address string, config *tls.Config) (net.Conn, error) {
	share, err := d.pool.descriptor(d.namespace, d.spare)
	if err != nil {
		return nil, dialFailed{err}
	}
	give := sync.OnceFunc(func() { share.Give(1) })
	// It is below TLS: net/http wants to see that.
	conn, err := d.dial(ctx, address, config, func(socket net.Conn) net.Conn { return &lent{socket, give} })
	if err != nil {
		give()
	}
	return conn, err
}

type lent struct {
	net.Conn
	give func()
}

// Close closes the connection, and gives its descriptor back once.
func (l *lent) Close() error {
	defer l.give()
	return l.Conn.Close()
}
