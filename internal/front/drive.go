package front

import (
	"net"

	"github.com/k8singress/k8singress/internal/connlimit"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/panics"
)

// Drive serves a connection of HTTP/1.1 until it ends, and closes it. It is a *tls.Conn whose handshake is complete, or one in the
// clear: a *net.TCPConn if nothing is around it. No byte of it has been read. It is called on a goroutine of the connection's own.
type Drive func(conn net.Conn, info *Info)

// Info is what a driver is told of a connection, and how it comes back to the front.
type Info struct {
	cohort   *cohort
	manner   *manner
	newcomer *newcomer
	handed   bool
}

// Limits are those of the server that the connection was accepted for, as the configuration that Caddy runs adjusts them. They are to be
// asked for with each request.
func (i *Info) Limits() Limits { return i.Serving().adjusted(i.manner.limits) }

// Serving has the server of the configuration that Caddy runs. It is asked for each request anew.
func (i *Info) Serving() *Serving { return i.cohort.group.Serving() }

// Port is that of an address that Open has opened; it is 0 for those of the server.
func (i *Info) Port() uint16 { return i.cohort.port }

// Answer answers a request by the server of the moment. It returns false, and has done nothing, if that answers by itself.
func (i *Info) Answer(w message.Writer, r *message.Request) bool {
	answer := i.Serving().answering(i.cohort.port)
	if answer == nil {
		return false
	}
	answer(w, r)
	return true
}

// Leaving says that the next answer is the last one of the connection, and has to say so.
func (i *Info) Leaving() bool { return i.cohort.leaving.Load() }

// OnLeave has a function called, on another goroutine, when connections have to leave: at once if they do already. The
// driver is to end the connection when it waits for a request. The function is forgotten when the driver returns.
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

// Occupy tells the front what the driver does with the connection, which may have to end so that another one has room.
// Without it, the connection never has to.
func (i *Info) Occupy(o connlimit.Occupant) { i.newcomer.place.Occupy(o) }

// HandOver gives the connection to net/http, which owns it from now on. What the driver has read must come again: of TLS it is a
// connection with the method ConnectionState then, or its requests look as if they had come in the clear. Without TLS, it may be
// HTTP/2 as well. It may be called once.
func (i *Info) HandOver(conn net.Conn) {
	i.handed = true
	i.cohort.pending.Add(1)
	if newcomerOf(conn) == nil {
		conn = &newcomer{Conn: conn, place: i.newcomer.place}
	}
	i.cohort.serversFor(i.manner).one.push(conn)
}

// drive is done with the connection when the driver returns, unless it has handed it over.
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
