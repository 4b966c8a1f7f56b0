package resolver

import (
	"net"
	"net/netip"
	"os"
	"slices"
)

// metadata are where clouds answer every machine with its own secrets, besides the link-local address of most.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("168.63.129.16"),
}

// Networks whose addresses have an IPv4 address inside, which is where a packet ends.
var (
	translated = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	compatible = netip.MustParsePrefix("::/96")
	thisHost   = netip.MustParsePrefix("0.0.0.0/8")
	broadcast  = netip.MustParseAddr("255.255.255.255")
)

// forbidden says why a name may not lead to an address; it is empty when it may.
func forbidden(a netip.Addr, own []netip.Addr) string {
	a = innermost(a)
	switch {
	case a.IsLoopback():
		return "loopback"
	case a.IsUnspecified(), thisHost.Contains(a):
		return "unspecified"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast(), a == broadcast:
		return "multicast"
	case slices.Contains(metadata, a):
		return "metadata of the cloud"
	case slices.Contains(own, a):
		return "of this machine"
	case a == apiServer():
		return "the API server"
	}
	return ""
}

// innermost returns the IPv4 address that an IPv6 one stands for.
func innermost(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is6() {
		return a
	}
	bytes := a.As16()
	switch {
	case a.IsUnspecified(), a.IsLoopback():
		return a
	case translated.Contains(a), compatible.Contains(a):
		return netip.AddrFrom4([4]byte(bytes[12:]))
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(bytes[2:]))
	}
	return a
}

// apiServer is the address that Kubernetes gives each pod for it; outside of a pod it is not valid.
func apiServer() netip.Addr {
	a, _ := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST"))
	return a.Unmap()
}

// interfaceAddresses are those of this machine: the pod's own, when this is one.
func interfaceAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, prefix.Addr().Unmap())
		}
	}
	return own, nil
}

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
