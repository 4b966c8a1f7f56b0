package resolver

import (
	"net/netip"
	"slices"
)

// reachable removes the IPv6 addresses of a name that also has IPv4 addresses, on a machine without IPv6. Otherwise
// requests would first have to fail at each of them.
func reachable(found, own []netip.Addr) []netip.Addr {
	isIPv4 := func(a netip.Addr) bool { return a.Is4() }
	speaksIPv6 := func(a netip.Addr) bool { return a.Is6() && !a.IsLoopback() && !a.IsLinkLocalUnicast() }
	if !slices.ContainsFunc(found, isIPv4) || slices.ContainsFunc(own, speaksIPv6) {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), netip.Addr.Is6)
}
