package front

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/netaddr"
	"github.com/k8singress/k8singress/internal/panics"
)

// claim is what one configuration, or Open, has of an address. For Caddy it is a listener, on which nobody ever connects: the socket
// hands its connections to the group of the oldest claim.
type claim struct {
	front *Front
	// of is the server that Caddy opens it for. A live one is opened by Open.
	of   *Serving
	live bool
	// written is the address as the server has it, perhaps with a range of ports; address is the one of them.
	written, address caddy.NetworkAddress
	uncount          func()
	socket           *socket

	// group is nil until it is known how connections are served. It belongs to the lock of the front.
	group  *Group
	cohort *cohort
	manner atomic.Pointer[manner]

	// closed belongs to the lock of the front, too.
	closed bool
	done   chan struct{}
}

// tryAddress returns an error if the address may not be opened, because another listener uses it.
func (c *claim) tryAddress(ctx context.Context) error {
	switch address := netaddr.OffFront(c.address); {
	case c.live:
		return netaddr.TryAlone(ctx, address)
	case c.of.SharePorts:
		return nil
	default:
		return netaddr.TryOthers(ctx, address)
	}
}

// attach begins to serve connections. It is called with the lock of the front.
func (c *claim) attach(g *Group, k *cohort, m *manner) {
	c.group, c.cohort = g, k
	c.cohort.sources.Add(1)
	c.manner.Store(m)
	c.socket.choose()
}

// serve is called for each connection.
func (c *claim) serve(conn net.Conn) {
	m := c.manner.Load()
	if tcp, ok := conn.(*net.TCPConn); ok && m.alive != c.socket.alive {
		// Its error would be that the connection is gone.
		_ = tcp.SetKeepAliveConfig(m.alive)
	}
	c.cohort.begin(conn, m)
}

// Accept waits until Close.
func (c *claim) Accept() (net.Conn, error) {
	<-c.done
	return nil, net.ErrClosed
}

// Addr is the address of the socket.
func (c *claim) Addr() net.Addr { return c.socket.Addr() }

// Close gives the claim up. The socket stays if there is another one.
func (c *claim) Close() error {
	c.front.mu.Lock()
	defer c.front.mu.Unlock()
	c.release()
	return nil
}

// release is called with the lock of the front. It may be called more than once.
func (c *claim) release() {
	if c.closed {
		return
	}
	c.closed = true
	close(c.done)
	c.uncount()
	if c.live {
		defer c.front.forget(c)
	}
	c.socket.remove(c)
	if c.group == nil {
		return
	}
	if socket := c.socket; socket.ending {
		// What it still accepts is served.
		panics.Go("front/claim", func() {
			<-socket.ended
			c.cohort.sources.Add(-1)
		})
	} else {
		c.cohort.sources.Add(-1)
	}
	if c.of != nil {
		c.of.closed()
	}
}

// adopted is a listener that Caddy has opened for one configuration, in a network where that costs no connection: those of a Unix
// socket wait in a queue that all configurations share. Its connections are served by the front nevertheless.
type adopted struct {
	net.Listener
	of     *Serving
	cohort *cohort
	manner *manner

	once sync.Once
	done chan struct{}
}

func (a *adopted) Accept() (net.Conn, error) {
	<-a.done
	return nil, net.ErrClosed
}

func (a *adopted) Close() (err error) {
	a.once.Do(func() {
		close(a.done)
		err = a.Listener.Close()
	})
	return err
}

// accept hands out connections until the listener is closed.
func (a *adopted) accept() {
	acceptAll(a.Listener, func(conn net.Conn) { a.cohort.begin(conn, a.manner) })
	a.cohort.sources.Add(-1)
	a.of.front.mu.Lock()
	defer a.of.front.mu.Unlock()
	a.of.closed()
}
