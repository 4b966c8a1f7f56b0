package apply

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/netaddr"
	"github.com/k8singress/k8singress/internal/reach"
)

// The parts of the process that listen, and what stands in front of it, as the guard knows them.
const (
	ofOptions   = "options"
	ofServers   = "servers"
	ofPorts     = "ports"
	ofListeners = "listeners"
	ofService   = "service"
)

// Reach says which addresses may be dialled, and where this process listens by its options: its servers for clients, and what else. It
// takes effect at once: endpoints that must not be dialled are left out.
func (l *Live) Reach(o reach.Options, servers, own []string) {
	guard := l.endpoints.Guard()
	guard.Configure(o)
	guard.Listen(ofOptions, listeningAt(own))
	guard.Listen(ofServers, public(listeningAt(servers)))
	l.endpoints.Sift()
}

// public says that clients ask there.
func public(all []reach.Listening) []reach.Listening {
	for i := range all {
		all[i].Public = true
	}
	return all
}

// ReachService says where the controller's own Service listens.
func (l *Live) ReachService(own []reach.Listening) {
	if l.endpoints.Guard().Listen(ofService, public(own)) {
		l.endpoints.Sift()
	}
}

// guardPorts has the guard know the ports that are open at this moment.
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

// localhost is what the name stands for.
var localhost = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}

// listeningAt reads addresses of listeners. Of one that cannot be read Caddy says what is wrong, and Unix sockets have no port. A name
// of a host stands for each address of this machine.
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
			all = append(all, reach.Listening{Transport: transport, Host: host, First: uint16(at.StartPort), Last: uint16(at.EndPort)})
		}
	}
	return all
}
