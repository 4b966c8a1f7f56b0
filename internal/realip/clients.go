// Package realip tells where a request comes from: the address of the client, and the scheme, host and port that it asked
// for. Between it and us there may be proxies, whose word counts as far as the options say.
package realip

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
)

// Policy is whose word counts. It is immutable.
type Policy struct {
	options ir.Clients
	header  string
	// everybody says that the list of networks is empty.
	everybody bool
	trusted   []netip.Prefix
}

// New compiles the options. A network is a CIDR or one address; one that cannot be read trusts nobody.
func New(o ir.Clients) *Policy {
	p := &Policy{options: o, header: "X-Forwarded-For", everybody: len(o.Trusted) == 0}
	if o.Header != "" {
		p.header = http.CanonicalHeaderKey(o.Header)
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
func (p *Policy) Of(r *http.Request) Client {
	c := p.of(r)
	if p.options.ProxyProtocol && r.TLS == nil && localPort(r) == httpsPort {
		// The load balancer was asked on the port of HTTPS, and has ended TLS.
		c.Proto = "https"
	}
	return c
}

func (p *Policy) of(r *http.Request) Client {
	c := Client{Proto: "http", Host: r.Host}
	if r.TLS != nil {
		// Whatever the port is called inside of the cluster, clients reach it as 443.
		c.Proto, c.Port = "https", httpsPort
	} else {
		c.Port = localPort(r)
	}
	c.Peer = hostOf(r.RemoteAddr)
	c.IP = c.Peer
	if !p.options.UseForwarded && !p.options.RealIP {
		return c
	}
	peer, err := netip.ParseAddr(c.Peer)
	if err != nil || !p.Trusts(peer) {
		return c
	}
	if ip := p.furthest(r.Header[p.header]); ip != "" {
		c.IP = ip
	}
	if p.options.UseForwarded {
		c.Believed = true
		c.believe(r.Header)
	}
	return c
}

// believe takes over what the proxy in front has said. Of several hosts, which several proxies have written, the first counts.
func (c *Client) believe(header http.Header) {
	for _, field := range [...]struct {
		name string
		to   *string
	}{{"X-Forwarded-Proto", &c.Proto}, {"X-Forwarded-Host", &c.Host}, {"X-Forwarded-Port", &c.Port}} {
		if value := header.Get(field.name); value != "" {
			*field.to = value
		}
	}
	c.Host, _, _ = strings.Cut(c.Host, ",")
}

// furthest returns the last address of a list that is nobody's whose word counts, from the end: nginx's real_ip_recursive.
// If all are trusted, that is the first one. What is no address ends the search.
func (p *Policy) furthest(values []string) string {
	found := ""
	list := strings.Split(strings.Join(values, ","), ",")
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
func (p *Policy) ForwardedFor(r *http.Request, c *Client) string {
	if !p.options.AppendForwarded || !c.Believed {
		return c.IP
	}
	before := strings.Join(r.Header["X-Forwarded-For"], ", ")
	if before == "" || c.Peer == "" {
		return before + c.Peer
	}
	return before + ", " + c.Peer
}

// hostOf takes port and zone off an address.
func hostOf(address string) string {
	host := address
	if i := strings.LastIndexByte(address, ':'); i >= 0 {
		host = strings.Trim(address[:i], "[]")
	}
	host, _, _ = strings.Cut(host, "%")
	if host == "@" {
		return ""
	}
	return host
}

func localPort(r *http.Request) string {
	switch address := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr:
		if address.Port == 80 {
			return "80"
		}
		return strconv.Itoa(address.Port)
	case net.Addr:
		if _, port, err := net.SplitHostPort(address.String()); err == nil {
			return port
		}
	}
	return "80"
}
