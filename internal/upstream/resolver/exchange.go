package resolver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/k8singress/k8singress/internal/process/panics"
)

const (
	// datagram is the maximum size in bytes of a DNS response over UDP. Packets of this size are not fragmented in any
	// usual network.
	datagram = 1232
	// maxAliases is the maximum number of queries for one name and address family, as each alias (CNAME) may need
	// another query.
	maxAliases = 8
)

// chase queries the addresses of a name for one address family, IPv4 or IPv6. If the response ends with an alias
// (CNAME) without an address, it queries the alias next. This is rarely needed, because most DNS servers resolve
// aliases themselves.
func (c *client) chase(ctx context.Context, name string, family uint16) (lookupResult, error) {
	ttl := maxTTL
	for range maxAliases {
		m, err := c.query(ctx, name, family)
		if err != nil {
			return lookupResult{}, err
		}
		a, end := read(m, name, family)
		ttl = min(ttl, a.ttl)
		switch {
		case len(a.addresses) > 0:
			return lookupResult{addresses: a.addresses, ttl: ttl}, nil
		case m.Rcode == dns.RcodeNameError:
			return lookupResult{}, errNoSuchName
		case strings.EqualFold(end, name):
			return lookupResult{}, errNoAddress
		}
		name = end
	}
	return lookupResult{}, fmt.Errorf("it has a chain of more than %d aliases", maxAliases)
}

// read follows the aliases (CNAME) of a name in a DNS response. It returns the name at the end of this chain of
// aliases, and its addresses.
func read(m *dns.Msg, name string, family uint16) (lookupResult, string) {
	a := lookupResult{ttl: maxTTL}
	for range len(m.Answer) + 1 {
		var alias *dns.CNAME
		for _, record := range m.Answer {
			header := record.Header()
			if header.Class != dns.ClassINET || !strings.EqualFold(header.Name, name) {
				continue
			}
			if c, ok := record.(*dns.CNAME); ok {
				alias = c
			}
			if address, ok := addressOf(record); ok && header.Rrtype == family {
				a.addresses = append(a.addresses, address)
				a.ttl = min(a.ttl, seconds(header.Ttl))
			}
		}
		if len(a.addresses) > 0 || alias == nil {
			break
		}
		name = alias.Target
		a.ttl = min(a.ttl, seconds(alias.Hdr.Ttl))
	}
	return a, name
}

func seconds(ttl uint32) time.Duration { return time.Duration(ttl) * time.Second }

func addressOf(record dns.RR) (netip.Addr, bool) {
	var ip net.IP
	switch record := record.(type) {
	case *dns.A:
		ip = record.A
	case *dns.AAAA:
		ip = record.AAAA
	}
	a, ok := netip.AddrFromSlice(ip)
	return a.Unmap(), ok
}

// query sends a query to the DNS servers one after the other, until a server returns a usable response.
func (c *client) query(ctx context.Context, name string, family uint16) (*dns.Msg, error) {
	question := new(dns.Msg)
	question.SetQuestion(name, family)
	question.SetEdns0(datagram, false)
	first := 0
	if c.rotate {
		first = rand.IntN(len(c.servers))
	}
	var failure error
	for range c.attempts {
		for i := range c.servers {
			server := c.servers[(first+i)%len(c.servers)]
			m, err := c.exchange(ctx, question, server)
			if err == nil {
				return m, nil
			}
			failure = fmt.Errorf("querying the DNS server %s: %w", server, err)
			if ctx.Err() != nil {
				return nil, failure
			}
		}
	}
	return nil, failure
}

// exchange queries one DNS server by UDP. If the response is truncated, it queries the server again by TCP.
func (c *client) exchange(ctx context.Context, question *dns.Msg, server string) (*dns.Msg, error) {
	m, err := c.over(ctx, "udp", question, server)
	// Check m before err: for a truncated message, there may also be a parse error.
	if m != nil && m.Truncated {
		m, err = c.over(ctx, "tcp", question, server)
	}
	if err != nil {
		return nil, err
	}
	return m, checkResponse(question, m)
}

func (c *client) over(ctx context.Context, network string, question *dns.Msg, server string) (*dns.Msg, error) {
	dnsClient := dns.Client{Net: network, Timeout: c.timeout}
	conn, err := dnsClient.DialContext(ctx, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	// Close the connection when ctx ends: otherwise a read would continue until its deadline.
	defer panics.AfterContext(ctx, "resolver/question", func() { conn.Close() })()
	m, _, err := dnsClient.ExchangeWithConnContext(ctx, question, conn)
	return m, err
}

// checkResponse returns an error if the response is unusable, so that another server must be queried.
func checkResponse(question, m *dns.Msg) error {
	sent := question.Question[0]
	switch {
	case !m.Response, len(m.Question) != 1, m.Question[0].Qtype != sent.Qtype,
		!strings.EqualFold(m.Question[0].Name, sent.Name):
		return errors.New("its response does not match the query")
	case m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError:
		return fmt.Errorf("it returned %s", dns.RcodeToString[m.Rcode])
	case m.Rcode == dns.RcodeSuccess && len(m.Answer) == 0 && !m.Authoritative && !m.RecursionAvailable &&
		len(m.Ns) > 0:
		return errors.New("the server returned a referral: recursion is not available")
	}
	return nil
}
