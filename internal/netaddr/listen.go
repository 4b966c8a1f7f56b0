// Package netaddr compares the addresses that servers listen on. Caddy lets two of them share one without an error, and
// each gets a part of the connections then; so whoever opens an address looks here first.
package netaddr

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// Front is the name of the network whose sockets outlive configurations of Caddy. Its addresses are those of TCP: tcp4 and tcp6 have
// it with a 4 and a 6.
const Front = "k8singress"

// FrontQUIC is the same for HTTP/3, whose addresses are those of UDP. Only Caddy asks for it.
const FrontQUIC = Front + "-quic"

// OnFront returns a TCP address in the network Front. It is false for an address of another network, such as a Unix socket.
func OnFront(a caddy.NetworkAddress) (caddy.NetworkAddress, bool) {
	suffix, ok := strings.CutPrefix(a.Network, "tcp")
	if ok {
		a.Network = Front + suffix
	}
	return a, ok
}

// OffFront is the reverse of OnFront: it returns the address that users write. Addresses of other networks stay as they are.
func OffFront(a caddy.NetworkAddress) caddy.NetworkAddress {
	if suffix, ok := strings.CutPrefix(a.Network, Front); ok {
		a.Network = "tcp" + suffix
	}
	return a
}

// Transport takes the 4 or the 6 off a network: "tcp", "udp", or what else it is. That of Front is "tcp".
func Transport(network string) string {
	if network = strings.TrimRight(network, "46"); network == Front {
		return "tcp"
	}
	return network
}

// Overlap says whether a connection could reach both addresses. Names of hosts are not looked up: a name overlaps with
// itself, and with an address that stands for every one.
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

// Taken is an address that something listens on.
type Taken struct {
	Address caddy.NetworkAddress
	// By says what listens there, for people.
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
