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
	"github.com/k8singress/k8singress/internal/exchange"
)

// descriptors are those of the connections to endpoints, shared by the namespaces of the backends. Clients of one namespace have any
// number of requests on few connections of HTTP/2 or HTTP/3, each of which wants an endpoint, and silent endpoints keep them: without
// shares there would be none left for the requests of others, nor for new clients.
var descriptors = sync.OnceValue(budget.Endpoints.Budget)

// noDescriptors counts the requests that got none.
var noDescriptors atomic.Int64

var errNoDescriptor = errors.New("the backends of the namespace have as many connections to endpoints as they may have: raise the limit of " +
	"open files, or start more replicas")

// descriptor takes one from the share of a namespace, to which it is to be given back. Idle connections of the namespace make room.
func (p *Pool) descriptor(namespace string) (*budget.Share, error) {
	share := descriptors().Share(namespace, "")
	for !share.Take(1) {
		if !p.makeRoom(namespace) {
			noDescriptors.Add(1)
			return nil, exchange.Fail(http.StatusServiceUnavailable, errNoDescriptor)
		}
	}
	return share, nil
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
	share, err := d.pool.descriptor(d.namespace)
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

// Descriptors is how many file descriptors connections to endpoints take, how many they may take, and how many requests got none.
type Descriptors struct{ Used, Most, Refused int64 }

// UsedDescriptors returns the numbers of this moment.
func UsedDescriptors() Descriptors {
	return Descriptors{descriptors().Used(), descriptors().Limit(), noDescriptors.Load()}
}
