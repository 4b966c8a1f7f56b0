package nginx

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode"
)

// nowhere is a network that no connection comes from: the address of a broadcast.
const nowhere = "255.255.255.255/32"

// Networks reads the networks and addresses of trusted proxies, with commas or spaces between them. An error is a Partial one: what
// cannot be read is left out. The list is never empty, because an empty one trusts every address; without anything that can be read
// it has a network that no connection comes from.
func Networks(text string) ([]string, error) {
	var networks, bad []string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		network, err := network(word)
		if err != nil {
			bad = append(bad, Quote(word))
			continue
		}
		networks = append(networks, network.String())
	}
	switch {
	case len(networks) == 0:
		return []string{nowhere}, Partial("no proxy is trusted, because no network can be read in " + Quote(text) +
			": write networks such as 10.0.0.0/8")
	case len(bad) > 0:
		return networks, Partial("left out, because these are not networks such as 10.0.0.0/8: " + strings.Join(bad, ", "))
	}
	return networks, nil
}

// network reads a network or an address. IPv4-mapped IPv6 addresses count as IPv4.
func network(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is no address", text)
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	if mapped := 128 - 32; network.Addr().Is4In6() && network.Bits() >= mapped {
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-mapped)
	}
	return network.Masked(), nil
}
