package front

import (
	"net"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// ConnHandler serves an HTTP/1.1 connection until it ends, and closes it. conn is a *tls.Conn whose handshake is
// complete, or a connection without TLS, which is a *net.TCPConn if nothing wraps it. No byte of an HTTP request has
// been read from it. ConnHandler runs on its own goroutine for each connection.
type ConnHandler func(conn net.Conn, info *ConnInfo)

// ConnInfo gives a ConnHandler the settings of a connection, and lets it call back to the front.
type ConnInfo struct {
	conns      *connSet
	config     *connConfig
	client     *clientConn
	handedOver bool
}

// Limits returns the limits of the server that accepted the connection, adjusted by the current configuration. The
// ConnHandler must call it again for each request.
func (i *ConnInfo) Limits() Limits { return i.Binding().adjustedLimits(i.config.limits) }

// Binding returns the server of the configuration that Caddy currently runs. The ConnHandler must call it again for
// each request.
func (i *ConnInfo) Binding() *Binding { return i.conns.group.Binding() }

// Port returns the port of an address that Open has opened. It is 0 for the server's own addresses.
func (i *ConnInfo) Port() uint16 { return i.conns.port }

// Answer handles a request with the current server. If that server has no Answer function for this port, Answer does
// nothing and returns false.
func (i *ConnInfo) Answer(w message.Writer, r *message.Request) bool {
	answer := i.Binding().answerAt(i.conns.port)
	if answer == nil {
		return false
	}
	answer(w, r)
	return true
}

// Leaving reports whether the connection has to end after the next response. That response must ask the client to close
// the connection.
func (i *ConnInfo) Leaving() bool { return i.conns.leaving.Load() }

// OnLeave registers a function that is called on another goroutine when connections have to end. If they have to end
// already, it is called at once, on this goroutine. The ConnHandler should then end the connection as soon as it waits
// for a request. The function is unregistered when the ConnHandler returns.
func (i *ConnInfo) OnLeave(do func()) {
	i.conns.mu.Lock()
	leaving := i.conns.leaving.Load()
	if !leaving {
		i.conns.onLeave[i] = do
	}
	i.conns.mu.Unlock()
	if leaving {
		do()
	}
}

// Occupy sets the state of the connection that the connection limit sees, so that the connection may be ended to make
// room for another one. If it is not called, the connection is never ended for that reason.
func (i *ConnInfo) Occupy(o connlimit.Occupant) { i.client.place.Occupy(o) }

// HandOver passes the connection to net/http, which owns it from then on. Reading from conn must return the bytes that
// the ConnHandler has read, too. With TLS, conn must have the method ConnectionState, or its requests look as if they
// came without TLS. Without TLS, the connection may use HTTP/2. HandOver may be called only once.
func (i *ConnInfo) HandOver(conn net.Conn) {
	s := i.conns.serversFor(i.config)
	i.handedOver = true
	i.conns.pending.Add(1)
	if clientConnOf(conn) == nil {
		conn = &clientConn{Conn: conn, place: i.client.place}
	}
	s.http1AndH2C.push(conn)
}

// serveHTTP1 runs the ConnHandler on a connection. When the ConnHandler returns, the connection is no longer counted,
// unless the ConnHandler has handed it over.
func (k *connSet) serveHTTP1(n *clientConn, conn net.Conn, m *connConfig) {
	if conn == net.Conn(n) {
		conn = n.Conn
	}
	info := &ConnInfo{conns: k, config: m, client: n}
	n.place.Occupy(nil)
	k.pending.Add(-1)
	defer func() {
		if !info.handedOver {
			k.connEnded(n.place)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.onLeave, info)
	}()
	k.group.front.ServeHTTP1(conn, info)
}

func (k *connSet) callOnLeave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, do := range k.onLeave {
		panics.Go("front/leave", do)
	}
	clear(k.onLeave)
}
