package structure

import (
	"cmp"
	"fmt"
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
func useOwnNames(config map[string]any, c settings.Config) error {
	servers := Branch(config, "apps", "http", "servers")
	for _, own := range ours {
		name := nameOf(c, own)
		server, exists := servers[name].(map[string]any)
		isTaken := slices.ContainsFunc(ours, func(other string) bool {
			return other != own && nameOf(c, other) == name
		})
		switch {
		case name == own:
		case isTaken || slices.Contains(ours, name) || exists && !slices.ContainsFunc(wrappersOf(server), isOurs):
			return fmt.Errorf("the name %q for the server of the option %s is taken by another server: choose another "+
				"name", name, optionOf[own])
		case exists:
			servers[own] = server
			delete(servers, name)
		}
	}
	return nil
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
