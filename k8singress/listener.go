package k8singress

import (
	"cmp"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/pires/go-proxyproto"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/engine"
	"github.com/k8singress/k8singress/internal/front"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/logs"
	"github.com/k8singress/k8singress/l4app"
)

func init() { caddy.RegisterModule(new(Listener)) }

// Listener has connections outlive the configuration: they are served by the front of the process, which has the requests
// answered by the server of the configuration that Caddy runs. Caddy's own listener never has any.
//
// It reads the PROXY protocol header (version 1 or 2) in front of each connection, as long as the global options ask for it
// with use-proxy-protocol. They are looked at for each new connection, so that switching it on or off loads no configuration,
// and connections that are open stay as they are. Without it, connections are not touched.
//
// A peer within proxy-real-ip-cidr, by default everybody, has to send the header at once: its connection is closed when
// something else comes, or nothing within proxy-protocol-header-timeout. A header that names no TCP client, as those of
// health checks (LOCAL, UNKNOWN), leaves the address of the peer. Any other peer is a client without a load balancer in
// front: its own address counts, and a header from it is no HTTP or TLS, and ends the connection. nginx wants a header from
// those as well, and does not believe it; clients inside of the cluster could not reach the port that way.
//
// With a limit for handshakes, which is for servers with TLS, connections for hosts with ssl-passthrough go to their backends
// as they are, and the server sees no more of them. While there is no such host, connections are not looked at.
//
// No other listener wrapper can stand beside it, but for "tls" behind it, which a server with TLS needs.
type Listener struct {
	// HandshakeTimeout is how long a TLS handshake may take. Default: as long as the head of a request.
	HandshakeTimeout caddy.Duration `json:"handshake_timeout,omitempty"`
	// H2C lets clients begin with HTTP/2 on connections without TLS, as "h2c" among the protocols of the server does. Default: false.
	H2C bool `json:"h2c,omitempty"`

	table *live.Table
	ports *l4app.Ports
	log   *zap.Logger
	// shortcut is for a server with TLS.
	shortcut *shortcut
	serving  *front.Serving
	engine   *engine.Engine
}

// CaddyModule returns the Caddy module information.
func (*Listener) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.k8singress", New: func() caddy.Module { return new(Listener) }}
}

// Provision finds the running tables, and has the front listen for the server.
func (l *Listener) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return errors.New("the listener wrapper k8singress is for servers of the http app")
	}
	if !standsAlone(server) {
		return errors.New(`the listener wrapper k8singress stands alone, or with "tls" behind it if the server has TLS`)
	}
	l.table, l.engine = app.engine.Table(), app.engine
	l.ports, l.log = app.engine.Ports(), logs.Logger("k8singress.passthrough")
	l.shortcut = newShortcut(server, app.engine, ctx.Logger())
	l.serving = &front.Serving{
		Context: ctx, Server: server, Admit: l.admit, Handshake: l.table.Handshake,
		HandshakeTimeout: time.Duration(l.HandshakeTimeout), H2C: l.H2C, SharePorts: app.SharePorts,
		Exempt: func(ip netip.Addr) bool { return l.table.Clients().Names(ip) },
		Adjust: func(of front.Limits) front.Limits { return adjust(of, &l.table.Global().Connections) },
	}
	if l.HandshakeTimeout > 0 {
		l.serving.Divert = func(at net.Addr, port uint16) front.Divert {
			passage := func() *l4app.Passage { return l.ports.Passage(at, l.table.StreamPolicy, l.log) }
			return newPassing(l.table, port, passage, l.log).divert
		}
	}
	d, reason := newDirect(server, l.table)
	l.serving.Reason, l.serving.AnswerBeside = reason, d.answer
	if reason == "" {
		l.serving.Answer = d.answer
	}
	front.Process().Prepare(l.serving)
	return nil
}

// standsAlone says whether a server has no other listener wrapper, which would never see a connection.
func standsAlone(server *caddyhttp.Server) bool {
	var names []string
	for _, raw := range server.ListenerWrappersRaw {
		var module struct{ Wrapper string }
		if err := json.Unmarshal(raw, &module); err != nil {
			return false
		}
		names = append(names, module.Wrapper)
	}
	return len(names) == 1 && len(server.TLSConnPolicies) == 0 || len(names) == 2 && names[0] == "k8singress" && names[1] == "tls"
}

// Cleanup is called when the configuration has ended, or was refused.
func (l *Listener) Cleanup() error {
	if l.serving != nil {
		l.serving.Forget()
	}
	return nil
}

// WrapListener gives the connections of a listener to the front.
func (l *Listener) WrapListener(next net.Listener) net.Listener {
	l.shortcut.install()
	defer l.engine.ServerStarted()
	return l.serving.Wrap(next)
}

// admit returns a connection that reads the header of the PROXY protocol when it is asked for its address, or for a byte.
func (l *Listener) admit(conn net.Conn) net.Conn {
	if options := &l.table.Global().Clients; options.ProxyProtocol && l.believes(conn.RemoteAddr()) {
		return proxied{proxyproto.NewConn(conn, proxyproto.WithPolicy(proxyproto.REQUIRE),
			proxyproto.SetReadHeaderTimeout(cmp.Or(options.ProxyTimeout, ir.ProxyTimeout)), proxyproto.ValidateHeader(keepTCP))}
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
	_ caddy.CleanerUpper    = (*Listener)(nil)
	_ caddy.ListenerWrapper = (*Listener)(nil)
)
