package resolver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/k8singress/k8singress/internal/process/panics"
)

// client resolves names with a fixed configuration. It is immutable.
type client struct {
	// servers are the DNS servers, as host:port.
	servers  []string
	search   []string
	ndots    int
	timeout  time.Duration
	attempts int
	rotate   bool
	hosts    map[string][]netip.Addr
}

// lookupResult is the result of a lookup. The addresses are sorted and without duplicates.
type lookupResult struct {
	addresses []netip.Addr
	ttl       time.Duration
	// fixed is true if the result does not come from DNS, but for example from the hosts file. It then stays valid
	// until the configuration changes.
	fixed bool
}

var (
	errNoSuchName = errors.New("the name does not exist in the DNS")
	errNoAddress  = errors.New("the name exists in the DNS, but has no address")
)

// lookup returns the addresses of a host. If there are no addresses, it returns an error.
func (c *client) lookup(ctx context.Context, host string) (lookupResult, error) {
	if list := c.known(host); len(list) > 0 {
		return lookupResult{addresses: sorted(list), fixed: true}, nil
	}
	if !isName(host) {
		return lookupResult{}, fmt.Errorf("%q is not a valid DNS name", host)
	}
	result := errNoSuchName
	for _, candidate := range c.candidates(host) {
		a, err := c.addresses(ctx, candidate)
		switch {
		case err == nil:
			return a, nil
		case errors.Is(err, errNoSuchName):
		case errors.Is(err, errNoAddress):
			if errors.Is(result, errNoSuchName) {
				result = err
			}
		default:
			// The query failed, so it is unknown whether this name exists. Do not try the next name of the search list,
			// which may belong to another host.
			return lookupResult{}, err
		}
	}
	return lookupResult{}, result
}

// known returns the addresses of a host for which no DNS query is needed: an IP address, localhost, or a name in the
// hosts file. It returns nil for all other hosts.
func (c *client) known(host string) []netip.Addr {
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" {
		return []netip.Addr{a.Unmap()}
	}
	bare := strings.TrimSuffix(host, ".")
	if list := c.hosts[bare]; len(list) > 0 {
		return list
	}
	if bare == "localhost" || strings.HasSuffix(bare, ".localhost") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	}
	return nil
}

// isName reports whether a host is a valid DNS name. Only letters, digits, "-", "_" and "." are allowed, because
// package dns interprets a backslash as an escape character.
func isName(host string) bool {
	for _, c := range host {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	_, ok := dns.IsDomainName(host)
	return ok && host != "." && !strings.HasPrefix(host, ".") && !strings.Contains(host, "..")
}

// candidates returns the names to query for a host, in the order in which they must be queried. As described in
// resolv.conf(5), it combines the host with the domains of the search list.
func (c *client) candidates(host string) []string {
	list := (&dns.ClientConfig{Search: c.search, Ndots: c.ndots}).NameList(host)
	return slices.DeleteFunc(list, func(name string) bool {
		_, ok := dns.IsDomainName(name)
		return !ok
	})
}

// addresses queries the IPv4 and IPv6 addresses of a name at the same time. It returns an error only if neither query
// returns addresses.
func (c *client) addresses(ctx context.Context, name string) (lookupResult, error) {
	types := [...]uint16{dns.TypeA, dns.TypeAAAA}
	var results [len(types)]lookupResult
	var errs [len(types)]error
	var queries panics.Group
	for i, t := range types {
		queries.Go("resolver/question", func() {
			errs[i] = panics.Run("resolver/question", func() (err error) {
				results[i], err = c.chase(ctx, name, t)
				return err
			})
		})
	}
	queries.Wait()
	all := lookupResult{ttl: min(results[0].ttl, results[1].ttl)}
	for i, err := range errs {
		if err != nil {
			all.ttl = results[len(types)-1-i].ttl
		}
		all.addresses = append(all.addresses, results[i].addresses...)
	}
	all.addresses = sorted(all.addresses)
	if len(all.addresses) > 0 {
		return all, nil
	}
	return lookupResult{}, worst(errs[:])
}

// worst returns the most important error. A failed query is more important than a name without addresses, which is more
// important than a name that does not exist.
func worst(errs []error) error {
	result := errNoSuchName
	for _, err := range errs {
		switch {
		case errors.Is(err, errNoSuchName):
		case errors.Is(err, errNoAddress):
			result = err
		default:
			return err
		}
	}
	return result
}

func sorted(list []netip.Addr) []netip.Addr {
	return slices.Compact(slices.SortedFunc(slices.Values(list), netip.Addr.Compare))
}
