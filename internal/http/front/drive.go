package front

import (
	"net"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// Drive serves an HTTP/1.1 connection until it ends, and closes it. conn is a *tls.Conn whose handshake is complete, or
// a connection without TLS, which is a *net.TCPConn if nothing wraps it. No byte of an HTTP request has been read from
// it. Drive runs on its own goroutine for each connection.
type Drive func(conn net.Conn, info *Info)

// Info gives a driver the settings of a connection, and lets it call back to the front.
type Info struct {
	cohort   *cohort
	manner   *manner
	newcomer *newcomer
	handed   bool
}

// Limits returns the limits of the server that accepted the connection, adjusted by the current configuration. The
// driver must call it again for each request.
func (i *Info) Limits() Limits { return i.Serving().adjusted(i.manner.limits) }

// Serving returns the server of the configuration that Caddy currently runs. The driver must call it again for each
// request.
func (i *Info) Serving() *Serving { return i.cohort.group.Serving() }

// Port returns the port of an address that Open has opened. It is 0 for the server's own addresses.
func (i *Info) Port() uint16 { return i.cohort.port }

// Answer handles a request with the current server. If that server has no Answer function for this port, Answer does
// nothing and returns false.
func (i *Info) Answer(w message.Writer, r *message.Request) bool {
	answer := i.Serving().answering(i.cohort.port)
	if answer == nil {
		return false
	}
	answer(w, r)
	return true
}

// Leaving reports whether the connection has to end after the next response. That response must tell the client so.
func (i *Info) Leaving() bool { return i.cohort.leaving.Load() }

// OnLeave registers a function that is called on another goroutine when connections have to end. If they have to end
// already, it is called at once, on this goroutine. The driver should then end the connection as soon as it waits for a
// request. The function is unregistered when the driver returns.
func (i *Info) OnLeave(do func()) {
	i.cohort.mu.Lock()
	leaving := i.cohort.leaving.Load()
	if !leaving {
		i.cohort.driven[i] = do
	}
	i.cohort.mu.Unlock()
	if leaving {
		do()
	}
}

// Occupy sets the state of the connection that the connection limit sees, so that the connection may be ended to make
// room for another one. If it is not called, the connection is never ended for that reason.
func (i *Info) Occupy(o connlimit.Occupant) { i.newcomer.place.Occupy(o) }

// HandOver passes the connection to net/http, which owns it from then on. Reading from conn must return the bytes that
// the driver has read, too. With TLS, conn must have the method ConnectionState, or its requests look as if they came
// without TLS. Without TLS, the connection may use HTTP/2. HandOver may be called only once.
func (i *Info) HandOver(conn net.Conn) {
	s := i.cohort.serversFor(i.manner)
	i.handed = true
	i.cohort.pending.Add(1)
	if newcomerOf(conn) == nil {
		conn = &newcomer{Conn: conn, place: i.newcomer.place}
	}
	s.one.push(conn)
}

// drive runs the driver on a connection. When the driver returns, the connection no longer counts, unless the driver
// has handed it over.
func (k *cohort) drive(n *newcomer, conn net.Conn, m *manner) {
	if conn == net.Conn(n) {
		conn = n.Conn
	}
	info := &Info{cohort: k, manner: m, newcomer: n}
	n.place.Occupy(nil)
	k.pending.Add(-1)
	defer func() {
		if !info.handed {
			k.gone(n.place)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.driven, info)
	}()
	k.group.front.Drive(conn, info)
}

func (k *cohort) callDriven() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, do := range k.driven {
		panics.Go("front/leave", do)
	}
	clear(k.driven)
}
