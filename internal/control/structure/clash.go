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
			for _, other := range others {
				if by := netaddr.FirstTaken(other.addresses, onNetworks(parsed, l.networks)...); by != nil {
					return fmt.Errorf("address %[1]s of the k8singress option %[2]s is taken by %[3]s: give %[2]s "+
						"another address%[4]s", address, l.option, by.By, l.alternative(other.app, by.Address))
				}
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
	// internal is true if the option is not for requests to Ingresses, so that no site can take over its address.
	internal bool
}

// alternative returns the end of the error message about a conflict with an address of one of Caddy's apps: what the
// administrator can do instead of changing the address of l. It returns "" if there is no alternative.
func (l listener) alternative(app string, address caddy.NetworkAddress) string {
	switch {
	case l.internal:
		return ""
	case app == appHTTP:
		return fmt.Sprintf(", or write \"%s off\" and use the k8singress directive in a site on that address", l.option)
	case app == appLayer4 && netaddr.Transport(address.Network) == "udp":
		return ", or write \"http3 off\""
	case app == appLayer4:
		return ", to which the handler proxy of the layer4 server can forward connections"
	}
	return ""
}

func listeners(c settings.Config) []listener {
	secure := []string{"tcp", "udp"}
	if c.HTTP3 == settings.HTTP3Off {
		secure = secure[:1]
	}
	all := []listener{{"http", c.HTTP, []string{"tcp"}, false}, {"https", c.HTTPS, secure, false}}
	if c.Health != "" {
		all = append(all, listener{"health", []string{c.Health}, []string{"tcp"}, true})
	}
	if address := c.AdmissionWebhook.Address(); address != "" {
		all = append(all, listener{"admission_webhook", []string{address}, []string{"tcp"}, true})
	}
	return all
}

// CheckAddresses returns an error if two of the options HTTP, HTTPS, Health and AdmissionWebhook use the same port of
// the same address. The error message is meant for the administrator. Invalid addresses are ignored, because other code
// reports them. Options that are not set have their default values.
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
			if o.internal {
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

// The apps of Caddy whose servers listen.
const (
	appHTTP   = "http"
	appLayer4 = "layer4"
)

// taken holds the addresses on which the servers of an app listen. The name of the app is "" for the admin API.
type taken struct {
	app       string
	addresses []netaddr.Taken
}

func (t *taken) add(by string, addresses ...string) {
	for _, address := range addresses {
		// Skip invalid addresses. They may contain placeholders; otherwise Caddy reports them.
		if parsed, err := caddy.ParseNetworkAddress(address); err == nil {
			t.addresses = append(t.addresses, netaddr.Taken{Address: parsed, By: by})
		}
	}
}

// takenAddresses returns the addresses on which other parts of the Caddy configuration listen.
func takenAddresses(config map[string]any) []taken {
	all := []taken{{}, {app: appHTTP}, {app: appLayer4}}
	if listen, ok := Branch(config, "admin")["listen"].(string); ok {
		all[0].add("the admin API", listen)
	}
	for i := range all[1:] {
		t := &all[1+i]
		servers := Branch(config, "apps", t.app, "servers")
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			server, _ := servers[name].(map[string]any)
			if !slices.Contains(ours, name) {
				t.add(describe(t.app, name, server), texts(server["listen"])...)
			}
		}
	}
	return all
}

// describe returns a description of a server for messages. It lists the server's hosts, because servers in a Caddyfile
// have no names.
func describe(app, name string, server map[string]any) string {
	if app != appHTTP {
		return app + " server " + name
	}
	if sites := slices.Sorted(maps.Keys(hosts(server))); len(sites) > 0 {
		return "the site " + strings.Join(sites, ", ")
	}
	return "server " + name
}
