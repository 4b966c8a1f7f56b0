// Package realip determines the client's address and the scheme, host and port that the client requested. Headers from
// proxies in front of the controller are only used if the configuration trusts these proxies.
package realip

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// Policy defines which proxies are trusted, and which of their headers are used. It is immutable.
type Policy struct {
	options ir.Clients
	// headers are the names of the header fields that contain the client's address. The first field that is present
	// counts. host is the header field that contains the requested host.
	headers []string
	host    message.Field
	// trustAll is true if all peers are trusted. This is the case if no trusted networks are configured.
	trustAll bool
	trusted  []netip.Prefix
	// server holds the settings of a Caddy server that apply in addition, and base is the policy without them. Both are
	// nil without such settings. If both is true, only peers that the server and the options trust are trusted.
	server *Server
	base   *Policy
	both   bool
}

// New compiles the settings. A trusted network is a CIDR prefix or a single address. Invalid networks are ignored, so
// that their addresses are not trusted.
func New(o ir.Clients) *Policy {
	p := &Policy{
		options: o, headers: []string{cmp.Or(o.Header, message.XForwardedFor.Name())}, trustAll: len(o.Trusted) == 0,
		host: message.NewField(cmp.Or(o.HostHeader, message.XForwardedHost.Name()), ""),
	}
	for _, text := range o.Trusted {
		if network, err := netip.ParsePrefix(text); err == nil {
			p.trusted = append(p.trusted, network.Masked())
		} else if ip, err := netip.ParseAddr(text); err == nil {
			p.trusted = append(p.trusted, netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()))
		}
	}
	return p
}

// Trusts reports whether the options trust the headers of a peer. ip is the zero Addr if the peer has no IP address.
// Settings of a Caddy server are not taken into account.
func (p *Policy) Trusts(ip netip.Addr) bool {
	return p.trustAll || contain(p.trusted, ip.Unmap().WithZone(""))
}

// trusts reports whether an address belongs to a trusted proxy. networks are the networks of the Caddy server for this
// request.
func (p *Policy) trusts(ip netip.Addr, networks []netip.Prefix) bool {
	return p.Trusts(ip) && (p.server == nil || contain(networks, ip.Unmap().WithZone("")))
}

// Names reports whether an address belongs to an explicitly configured network of trusted proxies. A configured network
// that contains all addresses is ignored, because it does not distinguish proxies from clients.
func (p *Policy) Names(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if p.server != nil && p.trustAll && p.server.names(ip) {
		return true
	}
	if p.base != nil {
		return p.base.Names(ip)
	}
	return named(p.trusted, ip)
}

const httpsPort = "443"

// Client describes the client of a request and the scheme, host and port that it requested.
type Client struct {
	// IP is the address of the client. Peer is the address at the other end of the connection, which may be a proxy.
	// Both are empty for connections over a Unix socket.
	IP, Peer string
	// Proto is the requested scheme, usually "http" or "https". Host is the requested Host header. Port is the
	// requested port.
	Proto, Host, Port string
	// Believed is true if the peer is trusted, so that its X-Forwarded-* headers were used.
	Believed bool
}

// Hostname returns Host without the port. The case of the name is not changed, and an IPv6 address keeps its brackets.
func (c *Client) Hostname() string {
	name, _, err := net.SplitHostPort(c.Host)
	switch {
	case err != nil:
		return c.Host
	case strings.Contains(name, ":"):
		return "[" + name + "]"
	}
	return name
}

// Of returns a description of the client that sent a request. As in ingress-nginx, use-forwarded-headers makes it use
// all X-Forwarded-* headers of a trusted peer, and enable-real-ip only the header with the client's address.
func (p *Policy) Of(r *message.Request) Client {
	c := p.of(r)
	if p.options.ProxyProtocol && r.TLS() == nil && localPort(r) == httpsPort {
		// A load balancer in front of this process has terminated TLS: the client connected to port 443, so it used
		// HTTPS.
		c.Proto = "https"
	}
	return c
}

func (p *Policy) of(r *message.Request) Client {
	c := Client{Proto: "http", Host: r.Host}
	if r.TLS() != nil {
		// Clients connect to port 443 for HTTPS, even if this process listens on another port.
		c.Proto, c.Port = "https", httpsPort
	} else {
		c.Port = localPort(r)
	}
	c.Peer = r.Conn.RemoteIP
	c.IP = c.Peer
	if !p.options.UseForwarded && !p.options.RealIP {
		return c
	}
	networks, trusted := p.trustsPeer(r)
	if !trusted {
		return c
	}
	c.IP = cmp.Or(p.address(r.Fields, networks), c.IP)
	if p.options.UseForwarded {
		c.Believed = true
		c.believe(r.Fields, p.host)
	}
	return c
}

// trustsPeer reports whether the peer that has sent a request is a trusted proxy. networks are the networks of the
// Caddy server for this request.
func (p *Policy) trustsPeer(r *message.Request) (networks []netip.Prefix, trusted bool) {
	peer := r.Conn.Remote
	if !peer.IsValid() && (p.server == nil || !p.server.Unix || p.both) {
		return nil, false
	}
	if p.server != nil {
		networks = p.server.networks(r)
	}
	return networks, !peer.IsValid() || p.trusts(peer.Addr(), networks)
}

// address returns the address of the client in the headers of a trusted proxy. It returns "" if they contain no
// address. networks are the networks of the Caddy server for this request.
func (p *Policy) address(fields message.Fields, networks []netip.Prefix) string {
	switch {
	case p.server == nil || p.both:
		for _, name := range p.headers {
			if list, ok := fields.Joined(name); ok {
				return p.furthest(list, networks)
			}
		}
		return ""
	case p.server.Strict:
		return lastUntrusted(fields, p.headers, networks)
	}
	return leftmost(fields, p.headers)
}

// believe applies the X-Forwarded-* headers of a trusted proxy. host is the header field that contains the requested
// host; if there are several such fields, the first one is used. Invalid values are ignored: many proxies forward these
// headers from clients unchanged, and the values are used in redirects.
func (c *Client) believe(fields message.Fields, host message.Field) {
	if proto := strings.ToLower(first(fields.Get(message.XForwardedProto))); slices.Contains(schemes, proto) {
		c.Proto = proto
	}
	for i := range fields {
		if fields[i].Is(host.Kind, host.Name) {
			if host := first(fields[i].Value); message.ValidHost(host) {
				c.Host = host
			}
			break
		}
	}
	if port, err := strconv.ParseUint(first(fields.Get(message.XForwardedPort)), 10, 16); err == nil && port > 0 {
		c.Port = strconv.FormatUint(port, 10)
	}
}

// schemes are the accepted values of X-Forwarded-Proto. Some proxies send ws or wss for WebSocket connections.
var schemes = []string{"http", "https", "ws", "wss"}

// first returns the first element of a comma-separated list.
func first(list string) string {
	part, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(part)
}

// furthest searches a list of addresses from the end for the first address that is not trusted, like nginx's
// real_ip_recursive. If all addresses are trusted, it returns the first address of the list. The search ends at an
// invalid address; furthest then returns the address after it. With LastAddress, it returns the last address.
func (p *Policy) furthest(joined string, networks []netip.Prefix) string {
	found, list := "", strings.Split(joined, ",")
	for i := len(list) - 1; i >= 0; i-- {
		ip, err := parse(strings.TrimSpace(list[i]))
		if err != nil {
			break
		}
		found = ip.String()
		if p.options.LastAddress || !p.trusts(ip, networks) {
			break
		}
	}
	return found
}

// parse parses an IP address, with or without a port.
func parse(text string) (netip.Addr, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip.Unmap().WithZone(""), nil
	}
	with, err := netip.ParseAddrPort(text)
	return with.Addr().Unmap().WithZone(""), err
}

// ForwardedFor returns the value of the X-Forwarded-For header for the endpoint. It is the address of the client.
// However, if compute-full-forwarded-for is enabled and the peer is trusted, it is the received list followed by the
// peer's address.
func (p *Policy) ForwardedFor(r *message.Request, c *Client) string {
	if !p.options.AppendForwarded || !c.Believed {
		return c.IP
	}
	before := r.Fields.JoinedKind(message.XForwardedFor)
	if before == "" || c.Peer == "" {
		return before + c.Peer
	}
	return before + ", " + c.Peer
}

func localPort(r *message.Request) string { return cmp.Or(r.Conn.LocalPort, "80") }
