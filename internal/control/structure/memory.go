package structure

import (
	"maps"
	"reflect"
	"slices"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// Memory holds our servers as they were in the last configuration in which nothing had to be put back, with the
// settings that the administrator has added, such as trusted_proxies. Merge restores these settings if a client of the
// admin API deletes or replaces a server, because our options do not contain them. The zero value holds no servers.
type Memory struct {
	// servers maps the default names of our servers to the servers, and names maps them to their names in the
	// configuration.
	servers map[string]map[string]any
	names   map[string]string
}

// Remember returns the memory of a configuration that Merge does not change. The caller must not change the
// configuration afterwards.
func Remember(config map[string]any, c settings.Config) Memory {
	m := Memory{map[string]map[string]any{}, map[string]string{}}
	servers := Branch(config, "apps", "http", "servers")
	for _, own := range ours {
		if server := Branch(servers, nameOf(c, own)); server != nil {
			m.servers[own], m.names[own] = server, nameOf(c, own)
		}
	}
	return m
}

// about returns the memory that is valid for a configuration. A client that edits the running configuration leaves our
// TLS policy in it. A configuration without the policy is a new one, such as JSON with only our app, and what an older
// configuration had must not come back: it may have trusted other proxies.
func (m Memory) about(config map[string]any) Memory {
	if !hasOurPolicy(config) {
		return Memory{}
	}
	return m
}

// hasOurPolicy reports whether a configuration contains our TLS policy, which Merge adds to every configuration.
func hasOurPolicy(config map[string]any) bool {
	policies, _ := Branch(config, "apps", "tls", "automation")["policies"].([]any)
	return slices.ContainsFunc(policies, func(p any) bool {
		policy, _ := p.(map[string]any)
		return reflect.DeepEqual(policy["get_certificate"], []any{map[string]any{"via": "k8singress"}})
	})
}

// completed returns one of our servers with all wanted settings. It keeps the administrator's settings in existing, and
// restores those in the memory. existing is nil if the configuration does not contain the server.
func (m Memory) completed(name string, existing, wanted map[string]any, c settings.Config) map[string]any {
	server := map[string]any{}
	maps.Copy(server, existing)
	m.restore(name, server, wanted)
	for key, value := range wanted {
		server[key] = merged(name, key, server[key], value, c)
	}
	return server
}

// restore adds settings in the memory that a server lacks: all of them if a client has replaced the server, and
// otherwise only those for which Merge would set a default.
func (m Memory) restore(name string, server, wanted map[string]any) {
	known, replaced := m.servers[name], isReplaced(server, wanted)
	for key, value := range known {
		if server[key] == nil && (replaced || slices.Contains(adjustableKeys, key)) {
			server[key] = value
		}
	}
	if known != nil && lacksWrappers(server, wanted) {
		server["listener_wrappers"] = known["listener_wrappers"]
	}
}

// isReplaced reports whether a server lacks settings that every server of ours has and that nothing but our options may
// change. A client has then deleted the server, or written another one in its place.
func isReplaced(server, wanted map[string]any) bool {
	for key := range wanted {
		if server[key] == nil && !slices.Contains(adjustableKeys, key) {
			return true
		}
	}
	return false
}

// lacksWrappers reports whether the listener wrappers of one of our servers are not the wanted ones, and do not tell
// which wrappers of the administrator belong to it.
func lacksWrappers(server, wanted map[string]any) bool {
	return administratorsWrappers(server["listener_wrappers"]) == nil &&
		!reflect.DeepEqual(server["listener_wrappers"], wanted["listener_wrappers"])
}
