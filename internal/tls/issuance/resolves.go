package issuance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/model/report"
)

// resolvePatience is the maximum time for all DNS lookups for one host.
const resolvePatience = 10 * time.Second

// resolverOf returns a resolver that uses the given DNS servers one after the other. It returns the system's resolver
// if servers is empty.
func resolverOf(servers []string) *net.Resolver {
	if len(servers) == 0 {
		return net.DefaultResolver
	}
	var turn atomic.Uint32
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		server := servers[int(turn.Add(1)-1)%len(servers)]
		if _, _, err := net.SplitHostPort(server); err != nil {
			server = net.JoinHostPort(strings.Trim(server, "[]"), "53")
		}
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}}
}

// elsewhere checks whether a certificate authority that connects to the host's name would reach this controller. It
// returns "" if so, or if the check is disabled. Otherwise it returns the reason, such as that the name resolves to
// another address. Wildcards are not checked, because they have no address.
func (s *setup) elsewhere(ctx context.Context, h *host) string {
	if s.addresses == nil || h.wildcard() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, resolvePatience)
	defer cancel()
	ours, err := s.ours(ctx)
	if len(ours) == 0 {
		const unknown = "the option check_host_dns requires the addresses of this controller, which are not known: " +
			"the administrator can set publish_address or publish_service"
		if err != nil {
			return unknown + " (" + clean(err.Error()) + ")"
		}
		return unknown
	}
	found, err := s.lookup(ctx, h.subject)
	switch {
	case err != nil:
		return "no certificate is requested until the name resolves to this controller, but its DNS lookup failed: " +
			clean(err.Error())
	case !slices.ContainsFunc(found, func(a netip.Addr) bool { return slices.Contains(ours, a) }):
		return fmt.Sprintf(
			"the name resolves to %s, and no certificate is requested until it resolves to one of %s: change its "+
				"DNS record",
			list(found),
			list(ours))
	}
	return ""
}

// ours returns the IP addresses at which clients reach this controller. If host names are configured, it resolves them.
func (s *setup) ours(ctx context.Context) (all []netip.Addr, failed error) {
	for _, address := range s.addresses() {
		if a, err := netip.ParseAddr(address); err == nil {
			all = append(all, a.Unmap())
			continue
		}
		found, err := s.lookup(ctx, address)
		all, failed = append(all, found...), errors.Join(failed, err)
	}
	return all, failed
}

func (s *setup) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	all, err := s.resolver.LookupNetIP(ctx, "ip", strings.TrimSuffix(name, ".")+".")
	for i := range all {
		all[i] = all[i].Unmap()
	}
	return all, err
}

func list(all []netip.Addr) string {
	words := make([]string, len(all))
	for i, a := range all {
		words[i] = a.String()
	}
	slices.Sort(words)
	return report.List(words, len(words), maxProblems)
}
