package structure

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/process/netaddr"
)

// clashes returns an error if another part of the Caddy configuration listens on an address that our options configure.
// Caddy would not report this conflict: listeners of one process can share a port, and each would get some of the
// connections.
func clashes(config map[string]any, c settings.Config) error {
	if err := CheckAddresses(c); err != nil {
		return fmt.Errorf("the options of k8singress: %w", err)
	}
	others := takenAddresses(config)
	for _, l := range listeners(c) {
		for _, address := range l.addresses {
			parsed, err := caddy.ParseNetworkAddress(address)
			if err != nil {
				return fmt.Errorf("address %q of the k8singress option %s: %w", address, l.option, err)
			}
			if other := netaddr.FirstTaken(others, onNetworks(parsed, l.networks)...); other != nil {
				return fmt.Errorf("address %s of the k8singress option %s is taken by %s: %s",
					address, l.option, other.By, fmt.Sprintf(l.remedy, l.option))
			}
		}
	}
	return nil
}

// listener holds the listen addresses that one of our options configures.
type listener struct {
	option    string
	addresses []string
	networks  []string
	// remedy is the end of the error message, which says how to resolve the conflict. It contains a formatting verb for
	// the name of the option.
	remedy string
}

func listeners(c settings.Config) []listener {
	const remedy = "give %[1]s another address, or write \"%[1]s off\" and use the k8singress directive in a site " +
		"on that address"
	secure := []string{"tcp", "udp"}
	if c.HTTP3 == settings.HTTP3Off {
		secure = secure[:1]
	}
	all := []listener{{"http", c.HTTP, []string{"tcp"}, remedy}, {"https", c.HTTPS, secure, remedy}}
	if c.Health != "" {
		all = append(all, listener{"health", []string{c.Health}, []string{"tcp"}, "give %s another address"})
	}
	return all
}

// CheckAddresses returns an error if two of the options HTTP, HTTPS and Health use the same port of the same address.
// The error message is meant for the administrator. Invalid addresses are ignored, because other code reports them.
// Options that are not set have their default values.
func CheckAddresses(c settings.Config) error {
	all := listeners(c.WithDefaults())
	for i := range all {
		for _, other := range all[i+1:] {
			if err := all[i].check(other); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l listener) check(o listener) error {
	for _, one := range l.addresses {
		for _, other := range o.addresses {
			a, err := caddy.ParseNetworkAddress(one)
			b, otherErr := caddy.ParseNetworkAddress(other)
			if err != nil || otherErr != nil || !netaddr.Overlap(a, b) {
				continue
			}
			remedy := "give one of the two another address, or turn it off"
			if o.option == "health" {
				remedy = "give one of the two another address"
			}
			if a == b {
				return fmt.Errorf("the options %s and %s cannot both listen on %s: %s", l.option, o.option, one, remedy)
			}
			return fmt.Errorf("the option %s with the address %s and the option %s with the address %s cannot both be "+
				"used, because the addresses overlap: %s",
				l.option, one, o.option, other, remedy)
		}
	}
	return nil
}

// onNetworks returns copies of the address, one for each of the given networks, such as tcp and udp. The address of a
// Unix socket is returned unchanged.
func onNetworks(a caddy.NetworkAddress, networks []string) []caddy.NetworkAddress {
	if a.IsUnixNetwork() {
		return []caddy.NetworkAddress{a}
	}
	variants := make([]caddy.NetworkAddress, 0, len(networks))
	for _, network := range networks {
		a.Network = network
		variants = append(variants, a)
	}
	return variants
}

// takenAddresses returns the addresses on which other parts of the Caddy configuration listen.
func takenAddresses(config map[string]any) []netaddr.Taken {
	var all []netaddr.Taken
	add := func(by string, addresses ...string) {
		for _, address := range addresses {
			// Skip invalid addresses. They may contain placeholders; otherwise Caddy reports them.
			if parsed, err := caddy.ParseNetworkAddress(address); err == nil {
				all = append(all, netaddr.Taken{Address: parsed, By: by})
			}
		}
	}
	if listen, ok := Branch(config, "admin")["listen"].(string); ok {
		add("the admin API", listen)
	}
	for _, app := range []string{"http", "layer4"} {
		servers := Branch(config, "apps", app, "servers")
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			server, _ := servers[name].(map[string]any)
			if !slices.Contains(ours, name) {
				add(describe(app, name, server), texts(server["listen"])...)
			}
		}
	}
	return all
}

// describe returns a description of a server for messages. It lists the server's hosts, because servers in a Caddyfile
// have no names.
func describe(app, name string, server map[string]any) string {
	if app != "http" {
		return app + " server " + name
	}
	if sites := slices.Sorted(maps.Keys(hosts(server))); len(sites) > 0 {
		return "the site " + strings.Join(sites, ", ")
	}
	return "server " + name
}
