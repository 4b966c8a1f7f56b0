package l4app

import (
	"fmt"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/mholt/caddy-l4/layer4"

	"github.com/k8singress/k8singress/internal/process/netaddr"
)

// takenBy returns the addresses on which the servers of a Caddy configuration listen. All apps of the configuration
// must have been provisioned, because provisioning can change their servers. They need not have been started.
func takenBy(ctx caddy.Context) []netaddr.Taken {
	var all []netaddr.Taken
	// Ignore an error: it means that the HTTP app is not configured, so the app uses no addresses.
	if app, err := ctx.AppIfConfigured("http"); err == nil {
		servers := app.(*caddyhttp.App).Servers
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			s := servers[name]
			all = appendTaken(all, "http server "+name, s.Listen, len(s.TLSConnPolicies) > 0 &&
				slices.Contains(s.Protocols, "h3"))
		}
	}
	if app, err := ctx.AppIfConfigured("layer4"); err == nil {
		servers := app.(*layer4.App).Servers
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			all = appendTaken(all, "layer4 server "+name, servers[name].Listen, false)
		}
	}
	return all
}

// appendTaken appends the listen addresses of a server. For a server with HTTP/3, it also appends each TCP address as a
// UDP address.
func appendTaken(all []netaddr.Taken, server string, texts []string, http3 bool) []netaddr.Taken {
	replacer := caddy.NewReplacer()
	for _, text := range texts {
		// Skip invalid addresses. The server that is configured with such an address reports the error itself.
		address, err := caddy.ParseNetworkAddress(replacer.ReplaceAll(text, ""))
		if err != nil {
			continue
		}
		by := server + ", which listens on " + netaddr.OffFront(address).String()
		all = append(all, netaddr.Taken{Address: address, By: by})
		if http3 && netaddr.Transport(address.Network) == "tcp" {
			address.Network = "udp"
			all = append(all, netaddr.Taken{Address: address, By: by})
		}
	}
	return all
}

// Check returns an error if the address is already used by a server of the Caddy configuration or by an open TCP or UDP
// port. Code outside of this package must call Check before it listens on an address, on the goroutine that changes the
// ports.
func (p *Ports) Check(address caddy.NetworkAddress) error {
	if err := p.check([]string{address.String()}); err != nil {
		return err
	}
	for _, name := range p.Names() {
		of := p.find(name)
		if of == nil || !slices.ContainsFunc(of.addresses, func(text string) bool {
			open, err := caddy.ParseNetworkAddress(text)
			return err == nil && netaddr.Overlap(open, address)
		}) {
			continue
		}
		by := "port " + name
		if of.wanted.Origin.Kind != "" {
			by += " of " + of.wanted.Origin.String()
		}
		return fmt.Errorf("the address is already used by the %s; one of the two needs another port", by)
	}
	return nil
}

// check returns an error if a server of the Caddy configuration uses one of the addresses. Caddy itself would return no
// error: the server and the port would share the address, and each of them would get some of the connections.
func (p *Ports) check(addresses []string) error {
	for _, text := range addresses {
		address, err := caddy.ParseNetworkAddress(text)
		if err != nil {
			return fmt.Errorf("address %q: %w", text, err)
		}
		if other := netaddr.FirstTaken(p.taken, address); other != nil {
			return fmt.Errorf("the address is already used by the %s, in the Caddy configuration; one of the two "+
				"needs another port", other.By)
		}
	}
	return nil
}
