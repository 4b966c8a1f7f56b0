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

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/logs"
	"github.com/k8singress/k8singress/l4app"
)

func init() { caddy.RegisterModule(new(Listener)) }

// Listener makes connections outlive the configuration. The front of the process serves them and passes their requests
// to the server of the configuration that Caddy runs. Caddy's own listener never gets a connection.
//
// If the ConfigMap enables use-proxy-protocol, Listener reads a PROXY protocol header (version 1 or 2) at the start of
// each connection. The option is checked for each new connection, so a change needs no reload and does not affect open
// connections. Without the option, connections are not read.
//
// A peer in proxy-real-ip-cidr, by default every peer, must send the header at once. Its connection is closed if it
// sends something else, or nothing within proxy-protocol-header-timeout. A header without a TCP client address, as in
// health checks (LOCAL, UNKNOWN), keeps the address of the peer. Any other peer is a client without a load balancer in
// front: its own address is used, and a header from it ends the connection because it is neither HTTP nor TLS. nginx
// requires a header from such peers, too, and ignores its content; clients inside the cluster could not reach the port
// that way.
//
// With HandshakeTimeout, which is set for servers with TLS, connections to hosts with ssl-passthrough are forwarded to
// their backends, and the server never sees them. While there is no such host, connections are not inspected.
//
// No other listener wrapper can be used on the same server, except "tls" behind this one, which a server with TLS
// needs.
type Listener struct {
	// HandshakeTimeout is the maximum duration of a TLS handshake. Default: the timeout for the head of a request.
	HandshakeTimeout caddy.Duration `json:"handshake_timeout,omitempty"`
	// H2C accepts HTTP/2 with prior knowledge on connections without TLS, like "h2c" in the protocols of the server.
	// Default: false.
	H2C bool `json:"h2c,omitempty"`

	table *live.Table
	ports *l4app.Ports
	log   *zap.Logger
	// certificateHook is used by servers with TLS.
	certificateHook *certificateHook
	binding         *front.Binding
	engine          *engine.Engine
}

// CaddyModule returns the Caddy module information.
func (*Listener) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.k8singress", New: func() caddy.Module { return new(Listener) }}
}

// Provision finds the running tables and prepares the front for the server.
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
		return errors.New(
			`the listener wrapper k8singress must be the only one, or be followed by "tls" if the server has TLS`)
	}
	l.table, l.engine = app.engine.Table(), app.engine
	l.ports, l.log = app.engine.Ports(), logs.Logger("k8singress.passthrough")
	l.certificateHook = newCertificateHook(server, app.engine, ctx.Logger())
	l.binding = &front.Binding{
		Context: ctx, Server: server, Admit: l.admit, Handshake: l.table.Handshake,
		HandshakeTimeout: time.Duration(l.HandshakeTimeout), H2C: l.H2C, SharePorts: app.SharePorts,
		Exempt: func(ip netip.Addr) bool { return l.table.Clients().Names(ip) },
		Adjust: func(of front.Limits) front.Limits { return adjust(of, &l.table.Global().Connections) },
	}
	if l.HandshakeTimeout > 0 {
		l.binding.Divert = func(at net.Addr, port uint16) front.Divert {
			passage := func() *l4app.Passage { return l.ports.Passage(at, l.table.StreamPolicy, l.log) }
			return newPassing(l.table, port, passage, l.log).divert
		}
	}
	d, reason := newDirect(server, l.table)
	l.binding.Reason, l.binding.AnswerOnListener = reason, d.serve
	if reason == "" {
		l.binding.Answer = d.serve
	}
	front.Process().Prepare(l.binding)
	return nil
}

// standsAlone reports whether a server has no other listener wrapper. Another one would never see a connection.
func standsAlone(server *caddyhttp.Server) bool {
	var names []string
	for _, raw := range server.ListenerWrappersRaw {
		var module struct{ Wrapper string }
		if err := json.Unmarshal(raw, &module); err != nil {
			return false
		}
		names = append(names, module.Wrapper)
	}
	return len(names) == 1 && len(server.TLSConnPolicies) == 0 || len(names) == 2 && names[0] == "k8singress" &&
		names[1] == "tls"
}

// Cleanup is called when the configuration has ended or was rejected.
func (l *Listener) Cleanup() error {
	if l.binding != nil {
		l.binding.Forget()
	}
	return nil
}

// WrapListener passes the connections of a listener to the front.
func (l *Listener) WrapListener(next net.Listener) net.Listener {
	l.certificateHook.install()
	defer l.engine.ServerStarted()
	return l.binding.Wrap(next)
}

// admit returns a connection that reads the PROXY protocol header on its first read or when its address is requested.
// It returns conn itself if the peer sends no header.
func (l *Listener) admit(conn net.Conn) net.Conn {
	if options := &l.table.Global().Clients; options.ProxyProtocol && l.trusts(conn.RemoteAddr()) {
		return proxied{proxyproto.NewConn(conn, proxyproto.WithPolicy(proxyproto.REQUIRE),
			proxyproto.SetReadHeaderTimeout(cmp.Or(options.ProxyTimeout, ir.ProxyTimeout)),
			proxyproto.ValidateHeader(keepTCP))}
	}
	return conn
}

// trusts reports whether a peer must send a PROXY protocol header, which is then trusted. A peer on a Unix socket has
// no address; it must send one if every peer must.
func (l *Listener) trusts(peer net.Addr) bool {
	var ip netip.Addr
	if tcp, ok := peer.(*net.TCPAddr); ok {
		ip = tcp.AddrPort().Addr()
	}
	return l.table.Clients().Trusts(ip)
}

// keepTCP removes addresses from a header that are not TCP addresses, as nginx does, because a request needs an IP
// address.
func keepTCP(h *proxyproto.Header) error {
	_, source := h.SourceAddr.(*net.TCPAddr)
	_, destination := h.DestinationAddr.(*net.TCPAddr)
	if !source || !destination {
		h.SourceAddr, h.DestinationAddr = nil, nil
	}
	return nil
}

// proxied is a connection with a PROXY protocol header whose write side can be closed separately.
type proxied struct{ *proxyproto.Conn }

// CloseWrite closes the write side of the connection.
func (c proxied) CloseWrite() error { return closeWrite(c.Raw()) }

// closeWrite closes the write side of a connection. net/http does this before it closes a connection on which the peer
// may still be sending, since the peer could otherwise lose the end of the response.
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
