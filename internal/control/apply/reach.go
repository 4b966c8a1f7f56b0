package apply

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// Each of these names stands for a group of addresses to which connections are rejected: addresses on which this
// process listens, and addresses of the controller's own Service, which forwards to this process.
const (
	ofOptions   = "options"
	ofServers   = "servers"
	ofPorts     = "ports"
	ofListeners = "listeners"
	ofService   = "service"
)

// Reach sets the rules that allow or reject addresses of endpoints. o contains the administrator's rules. servers and
// own are the addresses on which this process listens for clients and for the administrator: endpoints at these
// addresses are rejected. The rules take effect at once for the current endpoints.
func (l *Live) Reach(o reach.Options, servers, own []string) {
	guard := l.endpoints.Guard()
	guard.Configure(o)
	guard.Listen(ofOptions, listeningAt(own))
	guard.Listen(ofServers, public(listeningAt(servers)))
	l.endpoints.Sift()
}

// public marks the given listen addresses as addresses for clients, and returns them.
func public(all []reach.Listening) []reach.Listening {
	for i := range all {
		all[i].Public = true
	}
	return all
}

// ReachService sets the addresses of the controller's own Service, so that connections to them are forbidden.
func (l *Live) ReachService(own []reach.Listening) {
	if l.endpoints.Guard().Listen(ofService, public(own)) {
		l.endpoints.Sift()
	}
}

// guardPorts forbids connections to the addresses on which the open TCP and UDP ports and the listeners listen.
func (l *Live) guardPorts() {
	var addresses []string
	for _, key := range slices.Sorted(maps.Keys(l.listening.opened)) {
		_, address, _ := strings.Cut(key, " ")
		addresses = append(addresses, address)
	}
	guard := l.endpoints.Guard()
	ports := guard.Listen(ofPorts, listeningAt(l.ports.Addresses()))
	listeners := guard.Listen(ofListeners, listeningAt(addresses))
	if ports || listeners {
		l.endpoints.Sift()
	}
}

// localhost lists the addresses of the host name "localhost".
var localhost = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}

// listeningAt parses listen addresses. Invalid addresses are skipped, because Caddy reports them. Unix sockets are
// skipped, because they have no port. A host name is treated as all addresses of this machine, except "localhost",
// which is treated as the loopback addresses.
func listeningAt(addresses []string) []reach.Listening {
	var all []reach.Listening
	for _, text := range addresses {
		at, err := caddy.ParseNetworkAddressWithDefaults(caddy.NewReplacer().ReplaceAll(text, ""), "tcp", 0)
		if err != nil || at.StartPort == 0 {
			continue
		}
		hosts := []netip.Addr{{}}
		if ip, err := netip.ParseAddr(at.Host); err == nil {
			hosts = []netip.Addr{ip}
		} else if strings.EqualFold(at.Host, "localhost") {
			hosts = localhost
		}
		transport := reach.TCP
		if netaddr.Transport(at.Network) == string(reach.UDP) {
			transport = reach.UDP
		}
		for _, host := range hosts {
			all = append(all, reach.Listening{Transport: transport, Host: host, First: uint16(at.StartPort),
				Last: uint16(at.EndPort)})
		}
	}
	return all
}
