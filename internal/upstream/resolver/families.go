package resolver

import (
	"net/netip"
	"slices"
)

// reachable removes the IPv6 addresses of a name if this machine has no IPv6 address, because each request to them
// would fail first. It keeps them if the name has no IPv4 addresses. own lists the addresses of this machine.
func reachable(found, own []netip.Addr) []netip.Addr {
	isIPv4 := func(a netip.Addr) bool { return a.Is4() }
	speaksIPv6 := func(a netip.Addr) bool { return a.Is6() && !a.IsLoopback() && !a.IsLinkLocalUnicast() }
	if !slices.ContainsFunc(found, isIPv4) || slices.ContainsFunc(own, speaksIPv6) {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), netip.Addr.Is6)
}
