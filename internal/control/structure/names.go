package structure

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// nameOf returns the name of one of our servers in Caddy's configuration. own is its default name.
func nameOf(c settings.Config, own string) string { return cmp.Or(c.ServerNames[optionOf[own]], own) }

// OwnName returns the default name of a server if it is one of our servers, and otherwise its name.
func OwnName(c settings.Config, name string) string {
	for _, own := range ours {
		if nameOf(c, own) == name {
			return own
		}
	}
	return name
}

// useOwnNames gives our servers in config their default names. It returns an error if another server has a name that
// the options give to one of our servers.
func (m Memory) useOwnNames(config map[string]any, c settings.Config) error {
	servers := Branch(config, "apps", "http", "servers")
	m.useFormerNames(servers, c)
	for _, own := range ours {
		name := nameOf(c, own)
		server, exists := servers[name].(map[string]any)
		isTaken := slices.ContainsFunc(ours, func(other string) bool {
			return other != own && nameOf(c, other) == name
		})
		switch {
		case name == own:
		case isTaken || slices.Contains(ours, name) || exists && !m.recognizes(own, name, server):
			return fmt.Errorf("the name %q for the server of the option %s is taken by another server: choose another "+
				"name", name, optionOf[own])
		case exists:
			servers[own] = server
			delete(servers, name)
		}
	}
	return nil
}

// recognizes reports whether a server with the name that the options give to one of our servers is ours. Without our
// listener wrapper, it is ours only if our server had this name and these addresses before.
func (m Memory) recognizes(own, name string, server map[string]any) bool {
	return slices.ContainsFunc(wrappersOf(server), isOurs) ||
		m.names[own] == name && m.hasAddressesOf(own, server)
}

// useFormerNames gives default names to our servers that still have a name that the options gave them before. All of
// them lose the name first, because two servers may have exchanged their names.
func (m Memory) useFormerNames(servers map[string]any, c settings.Config) {
	found := map[string]any{}
	for own, name := range m.formerNames(servers, c) {
		found[own] = servers[name]
		delete(servers, name)
	}
	maps.Copy(servers, found)
}

// formerNames returns the names of our servers that still have a name that the options gave them before. The keys are
// their default names. A server with such a name is ours only if it has our addresses, and our listener wrapper or our
// routes, because a site can have the name by now.
func (m Memory) formerNames(servers map[string]any, c settings.Config) map[string]string {
	found := map[string]string{}
	for own, name := range m.names {
		server := Branch(servers, name)
		if name == nameOf(c, own) || servers[own] != nil || !m.hasAddressesOf(own, server) {
			continue
		}
		if slices.ContainsFunc(wrappersOf(server), isOurs) ||
			reflect.DeepEqual(server["routes"], m.servers[own]["routes"]) {
			found[own] = name
		}
	}
	return found
}

// hasAddressesOf reports whether a server listens on the same addresses as one of our servers in the memory.
func (m Memory) hasAddressesOf(own string, server map[string]any) bool {
	return server != nil && reflect.DeepEqual(server["listen"], m.servers[own]["listen"])
}

// useNames undoes useOwnNames.
func useNames(config map[string]any, c settings.Config) {
	servers := Branch(config, "apps", "http", "servers")
	for _, own := range ours {
		if name := nameOf(c, own); name != own && servers[own] != nil {
			servers[name] = servers[own]
			delete(servers, own)
		}
	}
}

func wrappersOf(server map[string]any) []any {
	list, _ := server["listener_wrappers"].([]any)
	return list
}
