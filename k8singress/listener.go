package k8singress

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/pires/go-proxyproto"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/live"
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
type Listener struct {
	// HandshakeTimeout is how long a TLS handshake may take. Default: as long as the head of a request.
	HandshakeTimeout caddy.Duration `json:"handshake_timeout,omitempty"`

	table  *live.Table
	latest atomic.Pointer[proxyPolicy]
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
	return nil
}

// WrapListener returns a listener whose connections come from the clients that headers name.
func (l *Listener) WrapListener(next net.Listener) net.Listener { return &accepting{next, l} }

// accepting is a listener with our connections. Accept reads nothing: net/http asks a connection for its address on the
// connection's own goroutine, and that is when the header is read.
type accepting struct {
	net.Listener
	wrapper *Listener
}

func (a *accepting) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return a.wrapper.wrap(conn), nil
}

func (l *Listener) wrap(conn net.Conn) net.Conn {
	if g := l.table.Global(); g.Clients.ProxyProtocol {
		conn = l.policy(g).wrap(conn)
	}
	if l.HandshakeTimeout > 0 {
		conn = &handshaking{Conn: conn, limit: time.Duration(l.HandshakeTimeout)}
	}
	return conn
}

// policy returns what the global options say, read once for all connections.
func (l *Listener) policy(g *ir.Global) *proxyPolicy {
	if p := l.latest.Load(); p != nil && p.of == g {
		return p
	}
	p := newProxyPolicy(g)
	l.latest.Store(p)
	return p
}

// headerTimeout is ingress-nginx's proxy-protocol-header-timeout.
const headerTimeout = 5 * time.Second

// proxyPolicy is who has to send a header, and until when.
type proxyPolicy struct {
	of        *ir.Global
	everybody bool
	trusted   []netip.Prefix
	timeout   time.Duration
}

// newProxyPolicy leaves out networks that are none, so that a list of nothing else trusts nobody.
func newProxyPolicy(g *ir.Global) *proxyPolicy {
	p := &proxyPolicy{of: g, everybody: len(g.Clients.Trusted) == 0, timeout: g.Clients.ProxyTimeout}
	if p.timeout <= 0 {
		p.timeout = headerTimeout
	}
	for _, text := range g.Clients.Trusted {
		if network, err := netip.ParsePrefix(text); err == nil {
			p.trusted = append(p.trusted, network)
		} else if address, err := netip.ParseAddr(text); err == nil {
			p.trusted = append(p.trusted, netip.PrefixFrom(address, address.BitLen()))
		}
	}
	return p
}

func (p *proxyPolicy) wrap(conn net.Conn) net.Conn {
	if !p.trusts(conn.RemoteAddr()) {
		return conn
	}
	return proxyproto.NewConn(conn, proxyproto.WithPolicy(proxyproto.REQUIRE),
		proxyproto.SetReadHeaderTimeout(p.timeout), proxyproto.ValidateHeader(keepTCP))
}

func (p *proxyPolicy) trusts(peer net.Addr) bool {
	if p.everybody {
		return true
	}
	tcp, ok := peer.(*net.TCPAddr)
	if !ok {
		return false
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	for _, network := range p.trusted {
		if network.Contains(address) {
			return true
		}
	}
	return false
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

// handshaking is a connection of which net/http has not cleared the deadlines yet, which it does after the TLS handshake.
// Until then none is further away than the limit.
type handshaking struct {
	net.Conn
	limit time.Duration
	done  atomic.Bool
}

func (c *handshaking) SetDeadline(t time.Time) error { return c.Conn.SetDeadline(c.clamp(t)) }

func (c *handshaking) SetReadDeadline(t time.Time) error { return c.Conn.SetReadDeadline(c.clamp(t)) }

func (c *handshaking) SetWriteDeadline(t time.Time) error {
	return c.Conn.SetWriteDeadline(c.clamp(t))
}

func (c *handshaking) clamp(t time.Time) time.Time {
	switch {
	case c.done.Load():
		return t
	case t.IsZero():
		c.done.Store(true)
		return t
	}
	if latest := time.Now().Add(c.limit); t.After(latest) {
		return latest
	}
	return t
}

var (
	_ caddy.Provisioner     = (*Listener)(nil)
	_ caddy.ListenerWrapper = (*Listener)(nil)
)
