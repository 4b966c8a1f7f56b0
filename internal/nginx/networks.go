package nginx

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode"
)

// nobody is a network from which no connection comes: the address of a broadcast.
const nobody = "255.255.255.255/32"

// Networks reads the networks and addresses that are to be believed. The list counts whatever the error is, and is never
// empty, because an empty one would be everybody: what cannot be read is left out of it, and without anything that can,
// nobody is in it.
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
		return []string{nobody}, fmt.Errorf("there is no network in %s, so nobody is believed: write networks such as 10.0.0.0/8", Quote(text))
	case len(bad) > 0:
		return networks, fmt.Errorf("left out, because these are no networks such as 10.0.0.0/8: %s", strings.Join(bad, ", "))
	}
	return networks, nil
}

// network reads a network or an address. IPv4 in the clothes of IPv6 is IPv4.
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
