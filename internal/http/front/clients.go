package front

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/process/connlimit"
)

// Clients returns the connection counts of HTTP clients, over all listeners and HTTP versions.
func (f *Front) Clients() connlimit.Figures { return f.clients.Figures() }

// client returns the client to which a connection is charged. A client without an IP address, such as on a Unix socket,
// has no share.
func (s *Binding) client(at net.Addr) connlimit.Client {
	ip := connlimit.IPOf(at)
	return connlimit.Client{Address: connlimit.AddressOf(ip), Exempt: s.Exempt != nil && ip.IsValid() && s.Exempt(ip)}
}

// clientConn is a connection that no HTTP server serves yet. Until the first byte of its TLS handshake or first request
// arrives, it may be closed to make room for another connection.
type clientConn struct {
	net.Conn
	place *connlimit.Place
	since time.Time
	// proxied is true if the connection starts with a PROXY protocol header, which names the client.
	proxied bool
	// hasData is true once a byte has arrived. ended is true if End closed the connection before that.
	hasData, ended atomic.Bool
	// handed is true once the ConnHandler or net/http has taken over the connection. Only the goroutine of serve uses
	// it.
	handed bool
	// netHTTP is the state of the connection once net/http serves it. It is nil until then.
	netHTTP *netHTTPConn
}

// enter takes a place for a new connection from the connection limiter. If there is no room, it closes the connection
// and returns nil.
func (k *connSet) enter(conn net.Conn, m *connConfig) *clientConn {
	n := &clientConn{Conn: m.admit(conn), since: time.Now()}
	n.proxied = n.Conn != conn
	c := m.of.client(conn.RemoteAddr())
	// While connections wait for their PROXY protocol header, they are charged to the proxy, and may be closed to make
	// room for others.
	c.Exempt = c.Exempt && !n.proxied
	n.place = k.group.front.clients.Enter(c, n)
	if n.place == nil {
		_ = conn.Close()
		return nil
	}
	return n
}

// readProxyHeader waits for the PROXY protocol header and charges the connection to the client that the header names.
// It returns false if that client has no room.
func (n *clientConn) readProxyHeader(m *connConfig) bool {
	return !n.proxied || n.place.Move(m.of.client(n.RemoteAddr()))
}

func (n *clientConn) Read(b []byte) (int, error) {
	count, err := n.Conn.Read(b)
	if count > 0 && !n.hasData.Load() {
		n.hasData.Store(true)
	}
	return count, err
}

// NetConn returns the underlying connection.
func (n *clientConn) NetConn() net.Conn { return n.Conn }

// State implements connlimit.Occupant.
func (n *clientConn) State() (connlimit.State, time.Duration) {
	if n.hasData.Load() {
		return connlimit.Busy, 0
	}
	return connlimit.Idle, time.Since(n.since)
}

// End implements connlimit.Occupant. It has no effect once the handshake has begun.
func (n *clientConn) End() {
	if !n.hasData.Load() {
		n.ended.Store(true)
		_ = n.Close()
	}
}

// clientConnOf returns the clientConn inside TLS and other wrappers, or nil.
func clientConnOf(conn net.Conn) *clientConn {
	for {
		switch wrapper := conn.(type) {
		case *clientConn:
			return wrapper
		case interface{ NetConn() net.Conn }:
			conn = wrapper.NetConn()
		default:
			return nil
		}
	}
}
