// Package realip determines the client of a request: its address, and the scheme, host and port that it requested. If
// there are proxies in front, their headers are used as far as the options trust them.
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

// Policy defines which proxies are trusted. It is immutable.
type Policy struct {
	options ir.Clients
	// header is the name of the field with the client's address. host is the field with the requested host.
	header string
	host   message.Field
	// trustAll is true if the list of trusted networks is empty. All peers are then trusted.
	trustAll bool
	trusted  []netip.Prefix
}

// New compiles the options. A network is a CIDR or a single address. Invalid networks are ignored, so they trust no
// peer.
func New(o ir.Clients) *Policy {
	p := &Policy{
		options: o, header: cmp.Or(o.Header, message.XForwardedFor.Name()), trustAll: len(o.Trusted) == 0,
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

// Trusts reports whether the headers of a peer are trusted. The zero Addr stands for a peer without an address.
func (p *Policy) Trusts(ip netip.Addr) bool {
	if p.trustAll {
		return true
	}
	ip = ip.Unmap().WithZone("")
	for _, network := range p.trusted {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// Names reports whether an address is in a configured network of trusted proxies. A network that contains all addresses
// is ignored, because it does not identify proxies.
func (p *Policy) Names(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(p.trusted, func(network netip.Prefix) bool {
		return network.Bits() > 0 && network.Contains(ip)
	})
}

const httpsPort = "443"

// Client is the client of a request, and what it requested.
type Client struct {
	// IP is the address of the client. Peer is the address of the connection's peer, which may be a proxy. Both are
	// empty for a Unix socket.
	IP, Peer string
	// Proto is usually http or https. Host is the requested Host header, and Port the requested port.
	Proto, Host, Port string
	// Believed is true if the X-Forwarded-* headers of the peer are used.
	Believed bool
}

// Hostname returns Host without the port. The name is as it was sent; an IPv6 address keeps its brackets.
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

// Of returns the client of a request, as ingress-nginx determines it: with use-forwarded-headers from the X-Forwarded-*
// headers of a trusted peer, and with enable-real-ip only the address from the configured header.
func (p *Policy) Of(r *message.Request) Client {
	c := p.of(r)
	if p.options.ProxyProtocol && r.TLS() == nil && localPort(r) == httpsPort {
		// The load balancer received the request on the HTTPS port and has terminated TLS.
		c.Proto = "https"
	}
	return c
}

func (p *Policy) of(r *message.Request) Client {
	c := Client{Proto: "http", Host: r.Host}
	if r.TLS() != nil {
		// Clients reach the HTTPS port as 443, whatever its number is inside the cluster.
		c.Proto, c.Port = "https", httpsPort
	} else {
		c.Port = localPort(r)
	}
	c.Peer = r.Conn.RemoteIP
	c.IP = c.Peer
	if !p.options.UseForwarded && !p.options.RealIP {
		return c
	}
	if peer := r.Conn.Remote; !peer.IsValid() || !p.Trusts(peer.Addr()) {
		return c
	}
	if list, ok := r.Fields.Joined(p.header); ok {
		c.IP = cmp.Or(p.furthest(list), c.IP)
	}
	if p.options.UseForwarded {
		c.Believed = true
		c.believe(r.Fields, p.host)
	}
	return c
}

// believe reads the headers of a trusted proxy. host is the field with the requested host; if several proxies have
// added it, the first one is used. Invalid schemes, hosts and ports are ignored, because many proxies forward what the
// client sent, and redirects are built from these values.
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

// schemes are the accepted values of X-Forwarded-Proto. Some proxies send ws or wss for WebSockets.
var schemes = []string{"http", "https", "ws", "wss"}

// first returns the first element of a comma-separated list.
func first(list string) string {
	part, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(part)
}

// furthest returns the last address of a list that is not trusted, searching from the end, like nginx's
// real_ip_recursive. If all addresses are trusted, it returns the first one. An invalid address ends the search.
func (p *Policy) furthest(joined string) string {
	found, list := "", strings.Split(joined, ",")
	for i := len(list) - 1; i >= 0; i-- {
		ip, err := parse(strings.TrimSpace(list[i]))
		if err != nil {
			break
		}
		found = ip.String()
		if !p.Trusts(ip) {
			break
		}
	}
	return found
}

// parse parses an address, with or without a port.
func parse(text string) (netip.Addr, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip.Unmap().WithZone(""), nil
	}
	with, err := netip.ParseAddrPort(text)
	return with.Addr().Unmap().WithZone(""), err
}

// ForwardedFor returns the value of X-Forwarded-For for the endpoint: the address of the client. With
// compute-full-forwarded-for it is the received list with the peer's address appended.
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
