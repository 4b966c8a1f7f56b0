package front

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/process/netconn"
)

// Clients returns the counters of client connections, over all listeners and HTTP versions.
func (f *Front) Clients() connlimit.Figures { return f.clients.Figures() }

// client returns the client that opened a connection from the address at, for the connection limiter. There is no limit
// per client for clients without an IP address, such as clients of a Unix socket.
func (s *Binding) client(at net.Addr) connlimit.Client {
	ip := netconn.AddrPort(at).Addr()
	return connlimit.Client{
		Address: connlimit.AddressOf(ip), Exempt: ip.IsValid() && s.Clients().Names(ip),
	}
}

// clientConn is an accepted connection. Until the first byte of its TLS handshake or first request arrives, it may be
// closed to make room for another connection.
type clientConn struct {
	net.Conn
	place *connlimit.Place
	since time.Time
	// proxied is true if the connection starts with a PROXY protocol header, which contains the client's address.
	proxied bool
	// hasData is true once a byte has arrived. ended is true if End closed the connection before any byte arrived.
	hasData, ended atomic.Bool
	// handed is true once a Driver (the HTTP server for the protocol) has taken over the connection. Only the goroutine
	// that runs connSet.passOn accesses it.
	handed bool
	// netHTTP is the state of the connection once net/http serves it. It is nil until then.
	netHTTP *netHTTPConn
	// hello is the state of the TLS handshake.
	hello
}

// enter registers a new connection with the connection limiter, and returns it as a clientConn. If the limiter rejects
// the connection, enter closes it and returns nil.
func (k *connSet) enter(conn net.Conn, m *connConfig) *clientConn {
	n := &clientConn{Conn: m.admit(conn), since: time.Now(), hello: hello{port: k.port}}
	n.proxied = n.Conn != conn
	c := m.of.client(conn.RemoteAddr())
	// Until its PROXY protocol header has arrived, a connection counts towards the limit of the proxy, even if the
	// proxy is exempt from the limit. Meanwhile, it may be closed to make room for other connections. A listener
	// wrapper may read such a header, too.
	c.Exempt = c.Exempt && !n.proxied && m.wrapping == nil
	n.place = k.group.front.clients.Enter(c, n)
	if n.place == nil {
		_ = conn.Close()
		return nil
	}
	return n
}

// readProxyHeader waits for the PROXY protocol header, and then counts the connection towards the limit of the client
// in the header. It returns false if that client has reached its limit. Without a PROXY protocol header it returns true
// at once.
func (n *clientConn) readProxyHeader(m *connConfig) bool {
	return !n.proxied || n.place.Move(m.of.client(n.RemoteAddr()))
}

// leaveWrapper is called when a listener wrapper before TLS returns the connection. client is the client as the wrapper
// describes it. leaveWrapper returns false if this client has reached its limit. What the wrapper has read, such as a
// PROXY protocol header, does not count as data of the client: otherwise the connection of a client that sends nothing
// else could not be closed to make room.
func (n *clientConn) leaveWrapper(client connlimit.Client) bool {
	n.hasData.Store(false)
	return n.place.Move(client)
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

// End implements connlimit.Occupant. It closes the connection if no data has arrived yet.
func (n *clientConn) End() {
	if !n.hasData.Load() {
		n.ended.Store(true)
		_ = n.Close()
	}
}

// clientConn returns n. It is a method of all connections from which clientConnOf finds the clientConn.
func (n *clientConn) clientConn() *clientConn { return n }

// clientConnOf returns the clientConn that conn wraps, for example with TLS, or nil if there is no clientConn.
func clientConnOf(conn net.Conn) *clientConn {
	layer, ok := netconn.Find[interface{ clientConn() *clientConn }](conn)
	if !ok {
		return nil
	}
	return layer.clientConn()
}
