package front

import (
	"net"
)

// Drive serves a connection of HTTP/1.1 until it ends, and closes it. It is a *tls.Conn whose handshake is complete, or one in the
// clear: a *net.TCPConn if nothing is around it. No byte of it has been read. It is called on a goroutine of the connection's own.
type Drive func(conn net.Conn, info *Info)

// Info is what a driver is told of a connection, and how it comes back to the front.
type Info struct {
	// Settings are the limits of the server that the connection was accepted for.
	Settings Limits

	cohort *cohort
	manner *manner
	handed bool
}

// Serving has the server of the configuration that Caddy runs. It is asked for each request anew.
func (i *Info) Serving() *Serving { return i.cohort.group.Serving() }

// Leaving says that the next answer is the last one of the connection, and has to say so.
func (i *Info) Leaving() bool { return i.cohort.leaving.Load() }

// OnLeave has a function called once, on another goroutine, when connections have to leave: at once if they do already. The driver is
// to end a connection then that waits for a request. The function is forgotten when the driver returns.
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

// HandOver gives the connection to net/http, which owns it from now on. What the driver has read must come again: of TLS it is a
// connection with the method ConnectionState then, or its requests look as if they had come in the clear. Without TLS, it may be
// HTTP/2 as well. It may be called once.
func (i *Info) HandOver(conn net.Conn) {
	i.handed = true
	i.cohort.pending.Add(1)
	i.cohort.serversFor(i.manner.settings).one.push(conn)
}

// drive is done with the connection when the driver returns, unless it has handed it over.
func (k *cohort) drive(conn net.Conn, m *manner) {
	info := &Info{Settings: m.limits(), cohort: k, manner: m}
	k.pending.Add(-1)
	defer func() {
		if !info.handed {
			k.conns.Add(-1)
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
		go do()
	}
	clear(k.driven)
}
