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

// Overwrites returns a text for each setting of our servers that Merge would overwrite in config, such as
// "k8singress_http.idle_timeout: use timeouts of the global option servers". It returns nil if config has none of our
// servers, because Merge then only adds them.
func Overwrites(config map[string]any, c settings.Config) (all []string) {
	if err := useOwnNames(config, c); err != nil {
		return nil // Merge returns the error.
	}
	defer useNames(config, c)
	servers := Branch(config, "apps", "http", "servers")
	isThere := func(name string) bool { return servers[name] != nil }
	if !slices.ContainsFunc(ours, isThere) {
		return nil
	}
	wanted := Tree(httpApp(c.WithDefaults()))
	for _, name := range ours {
		server := Branch(wanted, "servers", name)
		switch {
		case isThere(name) == (server != nil):
			all = append(all, overwrites(name, Branch(servers, name), server, c)...)
		default:
			all = append(all, fmt.Sprintf("%s: use the option %s", nameOf(c, name), optionOf[name]))
		}
	}
	return all
}

// overwrites returns a text for each setting of the server with the given name whose existing value is not the wanted
// one, except settings that the configuration may change.
func overwrites(name string, existing, wanted map[string]any, c settings.Config) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if reflect.DeepEqual(existing[key], merged(name, key, existing[key], wanted[key], c)) {
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
	return all
}
