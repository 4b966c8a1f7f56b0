package front

import (
	"net"

	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// Driver serves the connections of one ALPN protocol. It either serves a connection until the connection ends, and
// closes it, or returns after ConnInfo.HandOver. Before it waits for a request, it must call ConnInfo.OnLeave. conn is
// a *tls.Conn whose handshake is complete, or a connection without TLS, which is a *net.TCPConn unless it is wrapped.
// No byte of an HTTP request has been read from conn. Each connection has its own goroutine, which calls the Driver.
type Driver func(conn net.Conn, info *ConnInfo)

// The ALPN names of the protocols that have a Driver. A connection without ALPN uses HTTP/1.1.
const (
	http1 = "http/1.1"
	http2 = "h2"
)

// serveByNetHTTP is the Driver for HTTP/2, and for all connections to servers that do not allow HTTP/1.1. It hands over
// each connection to net/http.
func serveByNetHTTP(conn net.Conn, info *ConnInfo) { info.HandOver(conn) }

// ConnInfo gives a Driver the settings of its connection. The Driver also uses it to handle requests and to hand over
// the connection.
type ConnInfo struct {
	conns      *connSet
	config     *connConfig
	client     *clientConn
	handedOver bool
	// serving is true once the Driver has called OnLeave. Until then, the connection counts as pending in conns, so
	// that the servers of net/http, which the Driver may need, keep running.
	serving bool
}

// Limits returns the current limits for the connection: the limits of the Caddy server that accepted it, as changed by
// Binding.ClientLimits. The Driver must call Limits again for each request, and must not modify the result.
func (i *ConnInfo) Limits() *limits.Limits { return i.config.limits.under(i.Binding()) }

// Binding returns the current Binding. A reload of Caddy replaces it while the connection stays open, so the
// Driver must call Binding again for each request.
func (i *ConnInfo) Binding() *Binding { return i.conns.group.Binding() }

// Port returns the port of the address at which the connection arrived, if Front.Open has opened that address. It
// returns 0 for the server's own addresses.
func (i *ConnInfo) Port() uint16 { return i.conns.port }

// Answer handles a request with the Answer function of the current server. If the server has no such function for this
// port, Answer does nothing and returns false.
func (i *ConnInfo) Answer(w message.Writer, r *message.Request) bool {
	answer := i.Binding().answerAt(i.conns.port)
	if answer == nil {
		return false
	}
	answer(w, r)
	return true
}

// Leaving reports whether the connection must end, because its server was stopped or its address was closed. If so, the
// next response must ask the client to close the connection, and the Driver must end the connection after it.
func (i *ConnInfo) Leaving() bool { return i.conns.leaving.Load() }

// OnLeave registers a function that is called, by another goroutine, when the connection has to end. The Driver
// should then end the connection as soon as it waits for a request. If the connection already has to end, OnLeave calls
// the function itself. The function is unregistered when the Driver returns.
func (i *ConnInfo) OnLeave(do func()) {
	i.conns.mu.Lock()
	leaving := i.conns.leaving.Load()
	if !leaving {
		i.conns.onLeave[i] = do
	}
	i.conns.mu.Unlock()
	if !i.serving {
		i.serving = true
		i.conns.pending.Add(-1)
	}
	if leaving {
		do()
	}
}

// Occupy registers o with the connection limiter. The limiter asks o for the state of the connection, and calls o.End
// to close it when the limit is reached and another client connects. If Occupy is not called, the limiter never closes
// the connection.
func (i *ConnInfo) Occupy(o connlimit.Occupant) { i.client.place.Occupy(o) }

// HandOver passes the connection to net/http, which owns it from then on. Reads from conn must also return the bytes
// that the Driver has already read. If the connection uses TLS, conn must have the method ConnectionState; otherwise
// its requests look as if they came without TLS. Without TLS, the client may use HTTP/2 on the connection. HandOver may
// be called only once.
func (i *ConnInfo) HandOver(conn net.Conn) {
	if i.serving {
		i.serving = false
		i.conns.pending.Add(1)
	}
	s := i.conns.serversFor(i.config)
	i.handedOver = true
	if clientConnOf(conn) == nil {
		conn = &clientConn{Conn: conn, place: i.client.place}
	}
	if secured, ok := conn.(connectionStater); ok && secured.ConnectionState().NegotiatedProtocol == http2 {
		s.http2.push(asHTTP2(conn))
		return
	}
	s.http1AndH2C.push(conn)
}

// drive calls a Driver to serve a connection. When the Driver returns, drive decrements the number of connections,
// unless the Driver has handed the connection over to net/http.
func (k *connSet) drive(drive Driver, n *clientConn, conn net.Conn, m *connConfig) {
	if conn == net.Conn(n) {
		conn = n.Conn
	}
	info := &ConnInfo{conns: k, config: m, client: n}
	n.place.Occupy(nil)
	defer func() {
		if !info.handedOver {
			if !info.serving {
				k.pending.Add(-1)
			}
			k.connEnded(n.place)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.onLeave, info)
	}()
	drive(conn, info)
}

func (k *connSet) callOnLeave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, do := range k.onLeave {
		panics.Go("front/leave", do)
	}
	clear(k.onLeave)
}
