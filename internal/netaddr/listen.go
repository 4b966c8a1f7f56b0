// Package netaddr compares the addresses that servers listen on. Caddy lets two of them share one without an error, and
// each gets a part of the connections then; so whoever opens an address looks here first.
package netaddr

import (
	"net/netip"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// Transport takes the 4 or the 6 off a network: "tcp", "udp", or what else it is.
func Transport(network string) string { return strings.TrimRight(network, "46") }

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
