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

// claim represents the use of an address by one configuration of Caddy, or by Front.Open. Caddy uses it as a
// net.Listener, but its Accept never returns a connection. Instead, the socket of the address passes each connection to
// the Group of the oldest claim for this address.
type claim struct {
	front *Front
	// The field of is the server for which Caddy opens the address. If Front.Open has opened the address instead, of is
	// nil and live is true.
	of   *Binding
	live bool
	// written is the address in the server's configuration, which may have a range of ports. address is the same
	// address with the single port that this claim is for.
	written, address caddy.NetworkAddress
	uncount          func()
	socket           *socket

	// group contains the servers that handle the requests. It is nil until Binding.Wrap or Front.Open has set how
	// connections are served. It is guarded by Front.mu.
	group  *Group
	conns  *connSet
	config atomic.Pointer[connConfig]

	// closed is true once the claim has been released. It is guarded by Front.mu.
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

// attach starts serving the connections that arrive at the address of the claim. g contains the servers that handle the
// requests, k holds the connections, and m contains the settings for the connections. The caller must hold Front.mu.
func (c *claim) attach(g *Group, k *connSet, m *connConfig) {
	c.group, c.conns = g, k
	c.conns.sources.Add(1)
	m.wrap(k, c.Addr())
	c.config.Store(m)
	c.socket.choose()
}

// serve serves an accepted connection. The caller must first call c.conns.expect, which counts the connection.
func (c *claim) serve(conn net.Conn) {
	m := c.config.Load()
	if tcp, ok := conn.(*net.TCPConn); ok && m.alive != c.socket.alive {
		// Ignore the error: SetKeepAliveConfig fails only if the connection has ended.
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

// Close releases the claim. The socket stays open while it has other claims.
func (c *claim) Close() error {
	c.front.mu.Lock()
	defer c.front.mu.Unlock()
	c.release()
	return nil
}

// release removes the claim from its listening socket, which is closed when it has no other claims. It may be called
// more than once. The caller must hold Front.mu.
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
		// Until the socket is closed, it still accepts the connections in its accept queue, and this connSet must serve
		// them. So count the socket as an open listener (in sources) until then.
		panics.Go("front/claim", func() {
			<-socket.ended
			c.detach()
		})
	} else {
		c.detach()
	}
	if c.of != nil {
		c.of.closed()
	}
}

// detach ends what attach has begun. No connection arrives at the claim any more.
func (c *claim) detach() {
	c.config.Load().unwrap()
	c.conns.sources.Add(-1)
}

// adopted is a listener that Caddy has opened itself for one configuration, such as a Unix socket, and whose
// connections the front serves. The front does not have to keep such a listener open across reloads: the listeners of
// all configurations share one accept queue, so no connection is lost.
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
	a.config.unwrap()
	a.conns.sources.Add(-1)
	a.of.front.mu.Lock()
	defer a.of.front.mu.Unlock()
	a.of.closed()
}
