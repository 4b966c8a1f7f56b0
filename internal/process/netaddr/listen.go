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

// Front is the name of the network whose sockets are kept across Caddy configurations. Its addresses are TCP addresses.
// The suffixes 4 and 6 stand for tcp4 and tcp6.
const Front = "k8singress"

// FrontQUIC is the corresponding network for HTTP/3. Its addresses are UDP addresses. Only Caddy uses it.
const FrontQUIC = Front + "-quic"

// Probes is the network of the health port. A listener on it is opened only if no other process listens at the address.
// Its addresses are TCP addresses, with the suffixes of Front.
const Probes = Front + "-probes"

// OnFront returns a TCP address in the network Front. It returns false for an address of another network, such as a
// Unix socket.
func OnFront(a caddy.NetworkAddress) (caddy.NetworkAddress, bool) { return onNetwork(Front, a) }

// OnProbes returns a TCP address in the network Probes. It returns false for an address of another network.
func OnProbes(a caddy.NetworkAddress) (caddy.NetworkAddress, bool) { return onNetwork(Probes, a) }

func onNetwork(network string, a caddy.NetworkAddress) (caddy.NetworkAddress, bool) {
	suffix, ok := strings.CutPrefix(a.Network, "tcp")
	if ok {
		a.Network = network + suffix
	}
	return a, ok
}

// OffFront is the reverse of OnFront and OnProbes: it returns the address that users write. Addresses of other networks
// are not changed.
func OffFront(a caddy.NetworkAddress) caddy.NetworkAddress {
	if Transport(a.Network) == "tcp" {
		a.Network = "tcp" + a.Network[len(strings.TrimRight(a.Network, "46")):]
	}
	return a
}

// Transport returns a network without the suffix 4 or 6: "tcp", "udp" or another network. For Front and Probes it
// returns "tcp".
func Transport(network string) string {
	if network = strings.TrimRight(network, "46"); network == Front || network == Probes {
		return "tcp"
	}
	return network
}

// Overlap reports whether a connection could reach both addresses. Host names are not resolved: a name only overlaps
// with itself and with wildcard addresses.
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

// Taken is an address that is already in use.
type Taken struct {
	Address caddy.NetworkAddress
	// By describes the listener for people.
	By string
}

// FirstTaken returns the first address that overlaps with one of ours, or nil.
func FirstTaken(all []Taken, ours ...caddy.NetworkAddress) *Taken {
	for i := range all {
		if slices.ContainsFunc(ours, func(a caddy.NetworkAddress) bool { return Overlap(a, all[i].Address) }) {
			return &all[i]
		}
	}
	return nil
}
