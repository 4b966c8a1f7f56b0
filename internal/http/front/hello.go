package front

import (
	"net"

	"github.com/k8singress/k8singress/internal/process/netconn"
)

// hello is the state of a TLS handshake. It caches the virtual host, so that all functions called during the handshake
// use the same one.
type hello struct {
	// port is the port of the connection's local address if Front.Open has opened it, otherwise 0.
	port uint16
	// host is the result of the last call of LookUp, and server is the server name in that call. host is nil before the
	// first call.
	host   any
	server string
}

// quicHello wraps the connection of a QUIC handshake to store the state of the handshake.
type quicHello struct {
	net.Conn
	hello
}

// LookUp returns the virtual host for the TLS handshake on conn: the result of find(port, server), where port is
// PortOf(conn), and server is the server name that the client has sent. It calls find only once for a handshake, so
// that all functions called during the handshake use the same virtual host. It calls find again if server changes, as
// with Encrypted Client Hello, and in a QUIC handshake to select the certificate. LookUp must not be called after the
// handshake.
func LookUp[T any](conn net.Conn, server string, find func(port uint16, server string) *T) *T {
	h := helloOf(conn)
	if h == nil {
		return find(0, server)
	}
	host, found := h.host.(*T)
	if !found || h.server != server {
		host = find(h.port, server)
		h.host, h.server = host, server
	}
	return host
}

// PortOf returns the port of a connection's local address if Front.Open has opened that address. It returns 0 for all
// other addresses. conn is the connection that a TLS handshake uses.
func PortOf(conn net.Conn) uint16 {
	if h := helloOf(conn); h != nil {
		return h.port
	}
	return 0
}

// helloOf returns the state of the handshake on a connection. It returns nil for connections that this package does not
// serve.
func helloOf(conn net.Conn) *hello {
	layer, ok := netconn.Find[interface{ handshake() *hello }](conn)
	if !ok {
		return nil
	}
	return layer.handshake()
}

// handshake returns h. It is a method of all connections that embed a hello.
func (h *hello) handshake() *hello { return h }
