package resolver

import (
	"net/netip"
	"slices"
)

// reachable returns the addresses of a name that this machine can reach. own lists the addresses of this machine. If
// own contains no IPv6 address, the IPv6 addresses in found are omitted, because connections to them would fail. If the
// name has only IPv6 addresses, all of them are kept.
func reachable(found, own []netip.Addr) []netip.Addr {
	isIPv4 := func(a netip.Addr) bool { return a.Is4() }
	speaksIPv6 := func(a netip.Addr) bool { return a.Is6() && !a.IsLoopback() && !a.IsLinkLocalUnicast() }
	if !slices.ContainsFunc(found, isIPv4) || slices.ContainsFunc(own, speaksIPv6) {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), netip.Addr.Is6)
}
