package structure

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/listen"
	"github.com/k8singress/k8singress/internal/settings"
)

// taken is an address that something else in the configuration listens on.
type taken struct {
	address caddy.NetworkAddress
	// by says what listens there, for people.
	by string
}

// clashes looks for an address of ours that something else in the configuration listens on. Inside one process two
// listeners can share a port without an error, and each would get a part of the connections.
func clashes(config map[string]any, c settings.Config) error {
	if err := CheckAddresses(c); err != nil {
		return fmt.Errorf("the options of k8singress: %w", err)
	}
	others := takenAddresses(config)
	for _, option := range []struct {
		name      string
		addresses []string
		networks  []string
	}{
		{"http", c.HTTP, []string{"tcp"}},
		{"https", c.HTTPS, []string{"tcp", "udp"}},
	} {
		for _, address := range option.addresses {
			parsed, err := caddy.ParseNetworkAddress(address)
			if err != nil {
				return fmt.Errorf("address %q of the k8singress option %s: %w", address, option.name, err)
			}
			if other := firstOverlap(parsed, option.networks, others); other != nil {
				return fmt.Errorf("address %s of the k8singress option %s is taken by %s: give %s another address, or write "+
					"%q and let a site hand its requests over with the k8singress directive",
					address, option.name, other.by, option.name, option.name+" off")
			}
		}
	}
	return nil
}

// CheckAddresses returns an error if HTTP and HTTPS want the same port of the same address, worded for whoever wrote
// the options. Addresses that are not valid are left to others. Options that are not given count with their defaults.
func CheckAddresses(c settings.Config) error {
	c = c.WithDefaults()
	for _, one := range c.HTTP {
		for _, other := range c.HTTPS {
			a, err := caddy.ParseNetworkAddress(one)
			b, otherErr := caddy.ParseNetworkAddress(other)
			if err != nil || otherErr != nil || !listen.Overlap(a, b) {
				continue
			}
			if a == b {
				return fmt.Errorf("http and https cannot both listen on %s: give one of them another address, or turn it off", one)
			}
			return fmt.Errorf("http on %s and https on %s cannot both listen: they have a port in common; give one of them "+
				"another, or turn it off", one, other)
		}
	}
	return nil
}

func firstOverlap(a caddy.NetworkAddress, networks []string, others []taken) *taken {
	variants := []caddy.NetworkAddress{a}
	if !a.IsUnixNetwork() {
		variants = onNetworks(a, networks)
	}
	for i := range others {
		if slices.ContainsFunc(variants, func(v caddy.NetworkAddress) bool { return listen.Overlap(v, others[i].address) }) {
			return &others[i]
		}
	}
	return nil
}

// onNetworks returns the address once for each of the networks that a server listens on there.
func onNetworks(a caddy.NetworkAddress, networks []string) []caddy.NetworkAddress {
	variants := make([]caddy.NetworkAddress, 0, len(networks))
	for _, network := range networks {
		a.Network = network
		variants = append(variants, a)
	}
	return variants
}

func takenAddresses(config map[string]any) []taken {
	var all []taken
	add := func(by string, addresses ...string) {
		for _, address := range addresses {
			// What cannot be read here may hold a placeholder; Caddy itself finds what is wrong then.
			if parsed, err := caddy.ParseNetworkAddress(address); err == nil {
				all = append(all, taken{parsed, by})
			}
		}
	}
	if listen, ok := at(config, "admin")["listen"].(string); ok {
		add("the admin API", listen)
	}
	for _, app := range []string{"http", "layer4"} {
		servers := at(config, "apps", app, "servers")
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			server, _ := servers[name].(map[string]any)
			if name != HTTPServer && name != HTTPSServer {
				add(describe(app, name, server), texts(server["listen"])...)
			}
		}
	}
	return all
}

// describe names the sites of a server, because a Caddyfile has no names for servers.
func describe(app, name string, server map[string]any) string {
	if app != "http" {
		return app + " server " + name
	}
	if sites := slices.Sorted(maps.Keys(hosts(server))); len(sites) > 0 {
		return "the site " + strings.Join(sites, ", ")
	}
	return "server " + name
}
