package realip

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/http/message"
)

// Server holds the settings of a Caddy server about the proxies in front of it. A Server must not be copied. A nil
// *Server trusts no proxy, and leaves the settings of the ConfigMap as they are.
type Server struct {
	// Fixed are the networks of trusted proxies (trusted_proxies), if they do not change. Otherwise Networks returns
	// the networks for a request; it must not change the request.
	Fixed    []netip.Prefix
	Networks func(*http.Request) []netip.Prefix
	// Strict searches the headers from the right, for the first address that is not trusted (trusted_proxies_strict).
	// If it is false, the first address of the headers counts.
	Strict bool
	// Unix trusts the clients of Unix sockets (trusted_proxies_unix).
	Unix bool
	// Headers are the names of the header fields with the address of the client (client_ip_headers). Nil means the
	// header that the ConfigMap names if it decides, too, and otherwise X-Forwarded-For.
	Headers []string

	// latest are the last result of Networks, for decisions about connections without a request.
	latest atomic.Pointer[[]netip.Prefix]
	// policy caches the last result of Under.
	policy atomic.Pointer[Policy]
}

// Under returns the policy for requests to the server. p is the policy of the ConfigMap. If both configure proxies, the
// stricter setting applies:
//
//   - A peer is only trusted if both trust it.
//   - If the ConfigMap only trusts the header with the address of the client, so does the policy.
//   - The headers are searched from the right.
//
// The networks in the ConfigMap do not count if they only say which peers send a PROXY protocol header, because the
// server then compares the addresses in these headers with its networks.
func (s *Server) Under(p *Policy) *Policy {
	if s == nil {
		return p
	}
	if last := s.policy.Load(); last != nil && last.base == p {
		return last
	}
	combined := *p
	combined.base, combined.server = p, s
	o := &combined.options
	combined.both = p.options.NamesProxies()
	if !combined.both {
		combined.trustAll, combined.trusted = true, nil
	}
	o.UseForwarded = o.UseForwarded || !o.RealIP
	switch {
	case s.Headers != nil:
		combined.headers = s.Headers
	case !combined.both:
		combined.headers = []string{message.XForwardedFor.Name()}
	}
	s.policy.Store(&combined)
	return &combined
}

// networks returns the networks of trusted proxies for a request.
func (s *Server) networks(r *message.Request) []netip.Prefix {
	if s.Networks == nil {
		return s.Fixed
	}
	now := s.Networks(r.ToHTTP())
	if before := s.latest.Load(); before == nil || !slices.Equal(*before, now) {
		latest := now // A copy, so that only changes allocate memory.
		s.latest.Store(&latest)
	}
	return now
}

// names reports whether an address belongs to a network of trusted proxies, like Policy.Names. Without a request, it
// uses the networks of the last request.
func (s *Server) names(ip netip.Addr) bool {
	networks := s.Fixed
	if latest := s.latest.Load(); latest != nil {
		networks = *latest
	}
	return named(networks, ip)
}

// named reports whether one of the networks contains an address, without networks that contain all addresses.
func named(networks []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Bits() > 0 && n.Contains(ip) })
}

// leftmost returns the first address in the headers, or "" if they contain no address, like Caddy.
func leftmost(fields message.Fields, headers []string) string {
	for _, name := range headers {
		list, _ := fields.Joined(name)
		for part := range strings.SplitSeq(list, ",") {
			if ip, err := parse(strings.TrimSpace(part)); err == nil {
				return ip.String()
			}
		}
	}
	return ""
}

// lastUntrusted returns the last address in the first header that contains an address outside the networks, or "" if
// there is no such header. Like Caddy, it skips invalid addresses.
func lastUntrusted(fields message.Fields, headers []string, networks []netip.Prefix) string {
	for _, name := range headers {
		list, _ := fields.Joined(name)
		for _, part := range slices.Backward(strings.Split(list, ",")) {
			if ip, err := parse(strings.TrimSpace(part)); err == nil && !contain(networks, ip) {
				return ip.String()
			}
		}
	}
	return ""
}

// contain reports whether one of the networks contains an address.
func contain(networks []netip.Prefix, ip netip.Addr) bool {
	for _, network := range networks {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}
