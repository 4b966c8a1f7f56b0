package k8singress

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/pires/go-proxyproto"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/l4app"
)

func init() { caddy.RegisterModule(new(Listener)) }

// Listener reads the PROXY protocol header (version 1 or 2) in front of each connection, as long as the global options ask
// for it with use-proxy-protocol. They are looked at for each new connection, so that switching it on or off loads no
// configuration, and connections that are open stay as they are. Without it, connections are not touched.
//
// A peer within proxy-real-ip-cidr, by default everybody, has to send the header at once: its connection is closed when
// something else comes, or nothing within proxy-protocol-header-timeout. A header that names no TCP client, as those of
// health checks (LOCAL, UNKNOWN), leaves the address of the peer. Any other peer is a client without a load balancer in
// front: its own address counts, and a header from it is no HTTP or TLS, and ends the connection. nginx wants a header from
// those as well, and does not believe it; clients inside of the cluster could not reach the port that way.
//
// With a limit for handshakes, which is for servers with TLS, connections for hosts with ssl-passthrough go to their backends
// as they are, and the server sees no more of them. While there is no such host, connections are not looked at.
type Listener struct {
	// HandshakeTimeout is how long a TLS handshake may take. Default: as long as the head of a request.
	HandshakeTimeout caddy.Duration `json:"handshake_timeout,omitempty"`

	table *live.Table
	ports *l4app.Ports
	log   *zap.Logger
	// shortcut is for a server with TLS.
	shortcut *shortcut
}

// CaddyModule returns the Caddy module information.
func (*Listener) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.k8singress", New: func() caddy.Module { return new(Listener) }}
}

// Provision finds the running tables.
func (l *Listener) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	l.table = app.engine.Table()
	// Connections that are passed through outlive the configuration, and so does their log.
	l.ports, l.log = app.engine.Ports(), caddy.Log().Named("k8singress.passthrough")
	l.shortcut = newShortcut(ctx, app.engine)
	return nil
}

// WrapListener returns a listener whose connections come from the clients that headers name.
func (l *Listener) WrapListener(next net.Listener) net.Listener {
	l.shortcut.install()
	return &accepting{next, l, newPassing(l.table, l.ports, next.Addr(), l.log)}
}

// accepting is a listener with our connections. Accept reads nothing: net/http asks a connection for its address on the
// connection's own goroutine, and that is when the header is read.
type accepting struct {
	net.Listener
	wrapper *Listener
	passing *passing
}

func (a *accepting) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return a.wrapper.wrap(conn, a.passing), nil
}

func (l *Listener) wrap(conn net.Conn, by *passing) net.Conn {
	if options := &l.table.Global().Clients; options.ProxyProtocol && l.believes(conn.RemoteAddr()) {
		conn = proxied{proxyproto.NewConn(conn, proxyproto.WithPolicy(proxyproto.REQUIRE),
			proxyproto.SetReadHeaderTimeout(cmp.Or(options.ProxyTimeout, ir.ProxyTimeout)), proxyproto.ValidateHeader(keepTCP))}
	}
	if l.HandshakeTimeout > 0 {
		conn = &handshaking{Conn: conn, limit: time.Duration(l.HandshakeTimeout), passing: by}
	}
	return conn
}

// believes says whether a peer has to send a header. That of a Unix socket has no address, and has to if everybody does.
func (l *Listener) believes(peer net.Addr) bool {
	var ip netip.Addr
	if tcp, ok := peer.(*net.TCPAddr); ok {
		ip = tcp.AddrPort().Addr()
	}
	return l.table.Clients().Trusts(ip)
}

// keepTCP takes addresses out of a header that are not of TCP, as nginx does: a request has an IP address.
func keepTCP(h *proxyproto.Header) error {
	_, source := h.SourceAddr.(*net.TCPAddr)
	_, destination := h.DestinationAddr.(*net.TCPAddr)
	if !source || !destination {
		h.SourceAddr, h.DestinationAddr = nil, nil
	}
	return nil
}

// proxied is a connection with a PROXY protocol header, which can be closed in one direction.
type proxied struct{ *proxyproto.Conn }

// CloseWrite is closeWrite.
func (c proxied) CloseWrite() error { return closeWrite(c.Raw()) }

// closeWrite lets the peer know that nothing more comes, as net/http does before it closes a connection on which the peer may
// still send: otherwise the end of the answer could be lost.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

var (
	_ caddy.Provisioner     = (*Listener)(nil)
	_ caddy.ListenerWrapper = (*Listener)(nil)
)
