package front

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// claim lets one configuration, or Open, use an address. For Caddy it is a listener that never accepts
// a connection: the socket passes all connections to the group of its oldest claim.
type claim struct {
	front *Front
	// of is the server for which Caddy opens the address. live is true if Open opened it.
	of   *Binding
	live bool
	// written is the address in the server's configuration, which may have a range of ports. address is the one port in
	// that range that belongs to the claim.
	written, address caddy.NetworkAddress
	uncount          func()
	socket           *socket

	// group is nil until Wrap or Open has decided how connections are served. It is guarded by the front's lock.
	group  *Group
	conns  *connSet
	config atomic.Pointer[connConfig]

	// closed is guarded by the front's lock.
	closed bool
	done   chan struct{}
}

// tryAddress returns an error if the address must not be opened because another listener uses it.
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

// attach starts serving connections. The caller holds the front's lock.
func (c *claim) attach(g *Group, k *connSet, m *connConfig) {
	c.group, c.conns = g, k
	c.conns.sources.Add(1)
	c.config.Store(m)
	c.socket.choose()
}

// serve is called for each accepted connection, after expect of the connSet.
func (c *claim) serve(conn net.Conn) {
	m := c.config.Load()
	if tcp, ok := conn.(*net.TCPConn); ok && m.alive != c.socket.alive {
		// It fails only if the connection has ended.
		_ = tcp.SetKeepAliveConfig(m.alive)
	}
	c.conns.begin(conn, m)
}

// Accept blocks until Close is called. It never returns a connection.
func (c *claim) Accept() (net.Conn, error) {
	<-c.done
	return nil, net.ErrClosed
}

// Addr returns the address of the socket.
func (c *claim) Addr() net.Addr { return c.socket.Addr() }

// Close releases the claim. The socket stays open while it has another claim.
func (c *claim) Close() error {
	c.front.mu.Lock()
	defer c.front.mu.Unlock()
	c.release()
	return nil
}

// release ends the claim. The caller holds the front's lock. release may be called more than once.
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
		// The socket still accepts the connections in its queue, and these are served.
		panics.Go("front/claim", func() {
			<-socket.ended
			c.conns.sources.Add(-1)
		})
	} else {
		c.conns.sources.Add(-1)
	}
	if c.of != nil {
		c.of.closed()
	}
}

// adopted is a listener that Caddy opened for one configuration, on a network where changing listeners loses no
// connections: all configurations share the queue of a Unix socket. The front serves its connections, too.
type adopted struct {
	net.Listener
	of     *Binding
	conns  *connSet
	config *connConfig

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

// accept passes each accepted connection to the connSet, until the listener is closed.
func (a *adopted) accept() {
	acceptAll(a.Listener, func(conn net.Conn) {
		a.conns.expect()
		a.conns.begin(conn, a.config)
	})
	a.conns.sources.Add(-1)
	a.of.front.mu.Lock()
	defer a.of.front.mu.Unlock()
	a.of.closed()
}
