package resolver

import (
	"net/netip"
	"slices"
)

// reachable leaves out the IPv6 addresses of a name that has others, on a machine that speaks IPv4 only: each would cost
// requests a failure first.
func reachable(found, own []netip.Addr) []netip.Addr {
	isIPv4 := func(a netip.Addr) bool { return a.Is4() }
	speaksIPv6 := func(a netip.Addr) bool { return a.Is6() && !a.IsLoopback() && !a.IsLinkLocalUnicast() }
	if !slices.ContainsFunc(found, isIPv4) || slices.ContainsFunc(own, speaksIPv6) {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), netip.Addr.Is6)
}
