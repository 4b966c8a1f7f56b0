package structure

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// instead says, for settings of our servers in Caddy's configuration, what the administrator can change in their place.
var instead = map[string]string{
	"listener_wrappers":       ofServers("listener_wrappers"),
	"idle_timeout":            ofServers("timeouts"),
	"max_header_bytes":        ofServers("max_header_size"),
	"protocols":               "the option http3",
	"read_header_timeout":     ofServers("timeouts"),
	"read_idle_timeout":       ofServers("timeouts"),
	"routes":                  "a chain, or a site with the k8singress directive",
	"strict_sni_host":         ofServers("strict_sni_host"),
	"tls_connection_policies": "the ConfigMap keys ssl-protocols and ssl-ciphers",
	"write_idle_timeout":      ofServers("timeouts"),
}

func ofServers(option string) string { return option + " of the global option servers" }

// optionOf maps our servers to the options with their addresses.
var optionOf = map[string]string{HTTPServer: "http", HTTPSServer: "https", HealthServer: "health"}

// Overwrites returns a text for each setting of our servers that Merge would overwrite or restore in config, such as
// "k8singress_http.idle_timeout: use timeouts of the global option servers". It also says which servers lose settings
// that the memory does not hold. It returns nil if Merge only adds our servers to a new configuration.
func (m Memory) Overwrites(config map[string]any, c settings.Config) (all []string) {
	isNew := !hasOurPolicy(config)
	m, config = m.about(config, c), Tree(config)
	if err := m.useOwnNames(config, c); err != nil {
		return nil // Merge returns the error.
	}
	servers := Branch(config, "apps", "http", "servers")
	isThere := func(name string) bool { return servers[name] != nil }
	if isNew && !slices.ContainsFunc(ours, isThere) {
		return nil
	}
	wanted := Tree(httpApp(c.WithDefaults()))
	for _, name := range ours {
		existing, server := Branch(servers, name), Branch(wanted, "servers", name)
		switch {
		case isThere(name) == (server != nil):
			all = append(all, m.overwrites(name, existing, server, c)...)
		default:
			all = append(all, fmt.Sprintf("%s: use the option %s", nameOf(c, name), optionOf[name]))
		}
		if server != nil && !isNew && m.loses(name, existing, server) {
			all = append(all, nameOf(c, name)+": what the global option servers sets for it is "+UntilReload)
		}
	}
	return all
}

// UntilReload is the end of a text of Overwrites about settings of the administrator that are lost.
const UntilReload = "lost until the next reload of the Caddyfile"

// loses reports whether a server has lost settings of the administrator that the memory does not hold.
func (m Memory) loses(name string, existing, wanted map[string]any) bool {
	return name != HealthServer && m.servers[name] == nil &&
		(isReplaced(existing, wanted) || lacksWrappers(existing, wanted))
}

// overwrites returns a text for each setting of the server with the given name that Merge would change.
// If there are any, it also says which settings of the administrator Merge does not restore.
func (m Memory) overwrites(name string, existing, wanted map[string]any, c settings.Config) (all []string) {
	if wanted == nil {
		return nil
	}
	completed := m.completed(name, existing, wanted, c)
	for _, key := range slices.Sorted(maps.Keys(completed)) {
		if reflect.DeepEqual(existing[key], completed[key]) {
			continue
		}
		text := fmt.Sprintf("%s.%s", nameOf(c, name), key)
		if key == "listen" {
			text += ": use the option " + optionOf[name]
		} else if other := instead[key]; other != "" {
			text += ": use " + other
		}
		all = append(all, text)
	}
	if len(all) > 0 {
		for _, key := range m.lost(name, existing, wanted, completed) {
			all = append(all, fmt.Sprintf("%s.%s: %s", nameOf(c, name), key, UntilReload))
		}
	}
	return all
}
