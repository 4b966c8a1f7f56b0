// Package realip tells where a request comes from: the address of the client, and the scheme, host and port that it asked
// for. Between it and us there may be proxies, whose word counts as far as the options say.
package realip

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
)

// Policy is whose word counts. It is immutable.
type Policy struct {
	options ir.Clients
	// header has the address of the client, and host is the field with the host that it asked for.
	header string
	host   message.Field
	// everybody says that the list of networks is empty.
	everybody bool
	trusted   []netip.Prefix
}

// New compiles the options. A network is a CIDR or one address; one that cannot be read trusts nobody.
func New(o ir.Clients) *Policy {
	p := &Policy{
		options: o, header: cmp.Or(o.Header, message.XForwardedFor.Name()), everybody: len(o.Trusted) == 0,
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

// Trusts says whether the word of an address counts. The zero value is a peer without one.
func (p *Policy) Trusts(ip netip.Addr) bool {
	if p.everybody {
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

const httpsPort = "443"

// Client is who a request comes from, and how it asked.
type Client struct {
	// IP is its address, Peer that of the connection, which may be a proxy's. They are empty for a Unix socket.
	IP, Peer string
	// Proto is http or https, Host what the Host header was, Port the port that was asked.
	Proto, Host, Port string
	// Believed says that the peer's X-Forwarded-* headers count.
	Believed bool
}

// Hostname returns Host without the port. The rest stays as it was sent, with the brackets of an IPv6 address.
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

// Of tells who a request comes from, as ingress-nginx does: with use-forwarded-headers by the X-Forwarded-* headers of a
// trusted peer, and with enable-real-ip by the one with the address alone.
func (p *Policy) Of(r *message.Request) Client {
	c := p.of(r)
	if p.options.ProxyProtocol && r.TLS() == nil && localPort(r) == httpsPort {
		// The load balancer was asked on the port of HTTPS, and has ended TLS.
		c.Proto = "https"
	}
	return c
}

func (p *Policy) of(r *message.Request) Client {
	c := Client{Proto: "http", Host: r.Host}
	if r.TLS() != nil {
		// Whatever the port is called inside of the cluster, clients reach it as 443.
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

// believe takes over what the proxy in front has said. host is the field with the host; of several, which several proxies have written,
// the first counts. What is no scheme, host or port counts as not said: many proxies pass on what a client has written, and redirects are made
// of it.
func (c *Client) believe(fields message.Fields, host message.Field) {
	if proto := strings.ToLower(first(fields.Get(message.XForwardedProto))); slices.Contains(schemes, proto) {
		c.Proto = proto
	}
	for i := range fields {
		if fields[i].Is(host.Kind, host.Name) {
			if said := first(fields[i].Value); message.ValidHost(said) {
				c.Host = said
			}
			break
		}
	}
	if port, err := strconv.ParseUint(first(fields.Get(message.XForwardedPort)), 10, 16); err == nil && port > 0 {
		c.Port = strconv.FormatUint(port, 10)
	}
}

// schemes are those that a client may have asked by. Some proxies say those of WebSockets.
var schemes = []string{"http", "https", "ws", "wss"}

// first is the first part of a list.
func first(list string) string {
	part, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(part)
}

// furthest returns the last address of a list that is nobody's whose word counts, from the end: nginx's real_ip_recursive.
// If all are trusted, that is the first one. What is no address ends the search.
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

// parse reads an address, which may have a port.
func parse(text string) (netip.Addr, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip.Unmap().WithZone(""), nil
	}
	with, err := netip.ParseAddrPort(text)
	return with.Addr().Unmap().WithZone(""), err
}

// ForwardedFor is what the endpoint gets for X-Forwarded-For: the address of the client, or with compute-full-forwarded-for
// the list of the proxies, too.
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
