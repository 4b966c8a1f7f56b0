package front

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/connlimit"
)

// Clients returns the numbers of the connections of HTTP clients, over all listeners and all versions of HTTP.
func (f *Front) Clients() connlimit.Figures { return f.clients.Figures() }

// client returns who a connection counts for. A client without an IP address, on a Unix socket, has no share.
func (s *Serving) client(at net.Addr) connlimit.Client {
	ip := connlimit.IPOf(at)
	return connlimit.Client{Address: connlimit.AddressOf(ip), Exempt: s.Exempt != nil && ip.IsValid() && s.Exempt(ip)}
}

// newcomer is a connection until a server has it: while no byte of its TLS handshake or its first request has come, it
// may end so that another one has room.
type newcomer struct {
	net.Conn
	place *connlimit.Place
	since time.Time
	// proxied says that the connection begins with the header of a proxy, which names the client.
	proxied bool
	// spoke says that a byte has come, and ended that the connection was closed before.
	spoke, ended atomic.Bool
	// served is the connection as net/http serves it, or nil.
	served *served
}

// enter gives a new connection a place among those of all clients. It closes the connection and returns nil if there is
// no room.
func (k *cohort) enter(conn net.Conn, m *manner) *newcomer {
	n := &newcomer{Conn: m.admit(conn), since: time.Now()}
	n.proxied = n.Conn != conn
	c := m.of.client(conn.RemoteAddr())
	// While connections wait for the header of a proxy, the proxy has a share, and they may end for others.
	c.Exempt = c.Exempt && !n.proxied
	n.place = k.group.front.clients.Enter(c, n)
	if n.place == nil {
		_ = conn.Close()
		return nil
	}
	return n
}

// introduce counts a connection for the client that the header of a proxy names, for which it waits. It returns false
// if that client has no room.
func (n *newcomer) introduce(m *manner) bool {
	return !n.proxied || n.place.Move(m.of.client(n.RemoteAddr()))
}

// Read reads from the client.
func (n *newcomer) Read(b []byte) (int, error) {
	count, err := n.Conn.Read(b)
	if count > 0 && !n.spoke.Load() {
		n.spoke.Store(true)
	}
	return count, err
}

// NetConn returns the connection below.
func (n *newcomer) NetConn() net.Conn { return n.Conn }

// State implements connlimit.Occupant.
func (n *newcomer) State() (connlimit.State, time.Duration) {
	if n.spoke.Load() {
		return connlimit.Busy, 0
	}
	return connlimit.Idle, time.Since(n.since)
}

// End implements connlimit.Occupant. It has no effect when the handshake has begun.
func (n *newcomer) End() {
	if !n.spoke.Load() {
		n.ended.Store(true)
		_ = n.Close()
	}
}

// newcomerOf returns the newcomer below TLS and other wrappers, or nil.
func newcomerOf(conn net.Conn) *newcomer {
	for {
		switch wrapper := conn.(type) {
		case *newcomer:
			return wrapper
		case interface{ NetConn() net.Conn }:
			conn = wrapper.NetConn()
		default:
			return nil
		}
	}
}
