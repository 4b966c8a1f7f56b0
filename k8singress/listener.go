package k8singress

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/logs"
	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/l4app"
)

func init() { caddy.RegisterModule(new(Listener)) }

// Listener makes client connections survive configuration reloads. Package front serves the connections and passes
// their requests to the HTTP server of the running configuration. Caddy's own listener never gets a connection.
//
// If the ConfigMap enables use-proxy-protocol, Listener reads a PROXY protocol header (version 1 or 2) at the start of
// each connection. The option is read for each new connection, so a change needs no reload and does not affect open
// connections.
//
// A peer in proxy-real-ip-cidr, which contains all addresses by default, must send the PROXY protocol header first. Its
// connection is closed if it sends other data, or nothing within proxy-protocol-header-timeout. If the header contains
// no TCP client address, as in health checks (LOCAL, UNKNOWN), the address of the peer is used. Peers outside
// proxy-real-ip-cidr are clients that connect without a load balancer. Their own address is used; if they send a PROXY
// protocol header, the connection fails, because the header is neither HTTP nor TLS. nginx requires the header from
// such peers as well and ignores its content, but then clients inside the cluster could not reach the port.
//
// If HandshakeTimeout is set, as on servers with TLS, connections for hosts with ssl-passthrough are forwarded to their
// backends before the TLS handshake. If there are no such hosts, connections are not inspected.
//
// Other listener wrappers belong into the field "wrappers". The server itself can only have "tls" after this one, which
// is required on servers with TLS.
type Listener struct {
	// HandshakeTimeout is the maximum duration of a TLS handshake. Default: the timeout for reading the head of a
	// request.
	HandshakeTimeout caddy.Duration `json:"handshake_timeout,omitempty"`
	// H2C accepts HTTP/2 with prior knowledge on connections without TLS, like "h2c" in the protocols of the server.
	// Default: false.
	H2C bool `json:"h2c,omitempty"`
	// WrappersRaw lists other listener wrappers, through which each TCP connection passes. Wrappers before the wrapper
	// "tls" get connections before the TLS handshake, and wrappers after it get TLS connections. Without "tls", all
	// wrappers get TLS connections. A reload does not close connections, so the connections that a wrapper has returned
	// may outlive it. HTTP/3 does not use the wrappers. Default: none.
	WrappersRaw []json.RawMessage `json:"wrappers,omitempty" caddy:"namespace=caddy.listeners inline_key=wrapper"`

	table *live.Table
	ports *l4app.Ports
	log   *zap.Logger
	// certificateHook selects certificates. It is only used on servers with TLS.
	certificateHook *certificateHook
	binding         *front.Binding
	direct          *direct
	engine          *engine.Engine
}

// CaddyModule returns the Caddy module information.
func (*Listener) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.k8singress", New: func() caddy.Module { return new(Listener) }}
}

// Provision looks up the running k8singress app, and prepares package front to listen for this server.
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
			`the listener wrapper k8singress must be the only one, or be followed by "tls" if the server has TLS: ` +
				`put other listener wrappers into its field "wrappers"`)
	}
	beforeTLS, afterTLS, err := l.loadWrappers(ctx)
	if err != nil {
		return err
	}
	l.table, l.engine = app.engine.Table(), app.engine
	l.ports, l.log = app.engine.Ports(), logs.Logger("k8singress.passthrough")
	l.certificateHook = newCertificateHook(server, app.engine, ctx.Logger())
	proxies := proxiesOf(ctx, app)
	name := structure.OwnName(app.config, server.Name())
	l.binding = &front.Binding{
		Context: ctx, Server: server, Name: name, Admit: l.admit, BeforeTLS: beforeTLS, AfterTLS: afterTLS,
		Handshake: func(hello *tls.ClientHelloInfo, config *tls.Config) *tls.Config {
			return l.table.Handshake(hostOf(l.table, hello), config)
		},
		HandshakeTimeout: time.Duration(l.HandshakeTimeout), H2C: l.H2C, SharePorts: app.config.SharePorts,
		HeadFixed:    !structure.HasDefaultHead(name, server.MaxHeaderBytes),
		Clients:      func() *realip.Policy { return proxies.Under(l.table.Clients()) },
		ClientLimits: func() *ir.ClientConnections { return &l.table.Global().Connections },
	}
	if l.HandshakeTimeout > 0 {
		l.binding.Divert = func(at net.Addr, port uint16) front.Divert {
			passage := func() *l4app.Passage { return l.ports.Passage(at, l.table.StreamPolicy, l.log) }
			return newPassing(l.table, port, passage, l.log).divert
		}
	}
	d, reason := newDirect(server, l.table, proxies)
	l.direct, l.binding.Reason, l.binding.AnswerOnListener = d, reason, d.serve
	if reason == "" {
		l.binding.Answer = d.serve
	}
	l.binding.ByCaddy = accountedServer(server, d.clients)
	front.Process().Prepare(l.binding)
	return nil
}

// standsAlone reports whether a server has only this listener wrapper and, if needed, "tls". Any other listener wrapper
// would never get a connection.
func standsAlone(server *caddyhttp.Server) bool {
	names := wrapperNames(server.ListenerWrappersRaw)
	return len(names) == 1 && len(server.TLSConnPolicies) == 0 || len(names) == 2 && names[0] == "k8singress" &&
		names[1] == "tls"
}

// wrapperNames returns the names of listener wrappers.
func wrapperNames(wrappers []json.RawMessage) (names []string) {
	for _, raw := range wrappers {
		var module struct{ Wrapper string }
		// Ignore the error: Caddy reports it when it loads the module.
		_ = json.Unmarshal(raw, &module)
		names = append(names, module.Wrapper)
	}
	return names
}

// loadWrappers loads the other listener wrappers, and divides them at the wrapper "tls", as Caddy does.
func (l *Listener) loadWrappers(ctx caddy.Context) (beforeTLS, afterTLS []caddy.ListenerWrapper, err error) {
	if l.WrappersRaw == nil {
		return nil, nil, nil
	}
	names := wrapperNames(l.WrappersRaw)
	tls := slices.Index(names, "tls")
	switch {
	case slices.Contains(names, "k8singress"):
		return nil, nil, errors.New("the listener wrapper k8singress cannot be among its own wrappers: remove it")
	case tls == 0:
		return nil, nil, errors.New(
			`the listener wrapper "tls" is the first one: remove it, because without it all others come after TLS, too`)
	case tls >= 0 && slices.Contains(names[tls+1:], "tls"):
		return nil, nil, errors.New(`the listener wrapper "tls" is there twice: remove one of them`)
	}
	modules, err := ctx.LoadModule(l, "WrappersRaw")
	if err != nil {
		return nil, nil, fmt.Errorf("loading listener wrappers: %w", err)
	}
	for i, module := range modules.([]any) {
		switch wrapper := module.(caddy.ListenerWrapper); {
		case i < tls:
			beforeTLS = append(beforeTLS, wrapper)
		case i > tls:
			afterTLS = append(afterTLS, wrapper)
		}
	}
	return beforeTLS, afterTLS, nil
}

// Cleanup is called when the configuration is unloaded or was rejected.
func (l *Listener) Cleanup() error {
	if l.binding != nil {
		l.binding.Forget()
	}
	return nil
}

// WrapListener makes package front serve the connections of a listener.
func (l *Listener) WrapListener(next net.Listener) net.Listener {
	l.certificateHook.install()
	l.startMetrics()
	defer l.engine.ServerStarted()
	return l.binding.Wrap(next)
}

// startMetrics enables Caddy's HTTP metrics for the requests on the direct way, if the configuration has them. This is
// not possible in Provision, because the HTTP app is then being provisioned.
func (l *Listener) startMetrics() {
	metrics, err := newRouteMetrics(l.binding.Context, l.direct)
	if err != nil {
		l.log.Error("requests for hosts of Ingresses are missing in caddy_http_*", zap.Error(err))
	}
	l.direct.metrics.CompareAndSwap(nil, metrics)
}

// admit wraps a connection if its peer must send a PROXY protocol header, and returns other connections unchanged. The
// wrapper reads the header when the connection is first read or its address is requested, and returns the client
// address in the header. A peer on a Unix socket has no address, so it must only send the header if all peers must send
// it.
func (l *Listener) admit(conn net.Conn) net.Conn {
	options := &l.table.Global().Clients
	if options.ProxyProtocol && l.table.Clients().Trusts(netconn.AddrPort(conn.RemoteAddr()).Addr()) {
		proxied := netconn.NewProxied(conn, cmp.Or(options.ProxyTimeout, ir.ProxyTimeout))
		proxied.OnFailure(func(err error) { proxyHeaderFailed(logs.Logger("k8singress"), conn, err) })
		return proxied
	}
	return conn
}

var (
	_ caddy.Provisioner     = (*Listener)(nil)
	_ caddy.CleanerUpper    = (*Listener)(nil)
	_ caddy.ListenerWrapper = (*Listener)(nil)
)
