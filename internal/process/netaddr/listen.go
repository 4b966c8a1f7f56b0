// Package netaddr compares the addresses that servers listen on. Caddy lets two servers listen on the same address
// without an error. Each of them would then get a part of the connections, so callers check for conflicts before they
// open an address.
package netaddr

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// Front is the name of the Caddy network whose listening sockets stay open when Caddy loads a new configuration. Its
// addresses are TCP addresses. With the suffix 4 or 6, the network corresponds to tcp4 or tcp6.
const Front = "k8singress"

// FrontQUIC is the name of the Caddy network for HTTP/3 that corresponds to Front. Its addresses are UDP addresses.
// Only Caddy uses this name.
const FrontQUIC = Front + "-quic"

// Probes is the name of the Caddy network for the health port. A listener in this network is opened only if no other
// process listens on the address. Its addresses are TCP addresses. The suffixes 4 and 6 have the same meaning as for
// Front.
const Probes = Front + "-probes"

// OnFront converts a TCP address to an address in the network Front. It returns false for an address in another
// network, such as a Unix socket.
func OnFront(a caddy.NetworkAddress) (caddy.NetworkAddress, bool) { return onNetwork(Front, a) }

// OnProbes converts a TCP address to an address in the network Probes. It returns false for an address in another
// network.
func OnProbes(a caddy.NetworkAddress) (caddy.NetworkAddress, bool) { return onNetwork(Probes, a) }

func onNetwork(network string, a caddy.NetworkAddress) (caddy.NetworkAddress, bool) {
	suffix, ok := strings.CutPrefix(a.Network, "tcp")
	if ok {
		a.Network = network + suffix
	}
	return a, ok
}

// OffFront converts an address in the network Front or Probes back to a TCP address, as users write it. Addresses in
// other networks are not changed.
func OffFront(a caddy.NetworkAddress) caddy.NetworkAddress {
	if Transport(a.Network) == "tcp" {
		a.Network = "tcp" + a.Network[len(strings.TrimRight(a.Network, "46")):]
	}
	return a
}

// Transport returns the name of a network without the suffix 4 or 6, such as "tcp" or "udp". For Front and Probes it
// returns "tcp".
func Transport(network string) string {
	if network = strings.TrimRight(network, "46"); network == Front || network == Probes {
		return "tcp"
	}
	return network
}

// Overlap reports whether two listening addresses overlap, so that a connection could match both of them. Host names
// are not resolved: a name only overlaps with itself and with wildcard addresses.
func Overlap(a, b caddy.NetworkAddress) bool {
	if a.IsUnixNetwork() && b.IsUnixNetwork() {
		return a.Host == b.Host
	}
	return Transport(a.Network) == Transport(b.Network) &&
		a.StartPort <= b.EndPort && b.StartPort <= a.EndPort && sameHost(a.Host, b.Host)
}

func sameHost(a, b string) bool {
	if a == b || everywhere(a) || everywhere(b) {
		return true
	}
	first, errA := netip.ParseAddr(a)
	second, errB := netip.ParseAddr(b)
	return errA == nil && errB == nil && first == second
}

func everywhere(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "" || err == nil && address.IsUnspecified()
}

// Taken is an address that is already in use by a listener.
type Taken struct {
	Address caddy.NetworkAddress
	// By describes the listener that uses the address, for messages.
	By string
}

// FirstTaken compares each element of all with the addresses in ours. It returns the first element whose address
// overlaps with one of these addresses, or nil if there is no such element.
func FirstTaken(all []Taken, ours ...caddy.NetworkAddress) *Taken {
	for i := range all {
		if slices.ContainsFunc(ours, func(a caddy.NetworkAddress) bool { return Overlap(a, all[i].Address) }) {
			return &all[i]
		}
	}
	return nil
}
