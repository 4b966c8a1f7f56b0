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
	// outside is the rest of the configuration.
	outside map[string]any
}

// Remember returns the memory of a configuration that Merge does not change.
func Remember(config map[string]any, c settings.Config) Memory {
	config = Tree(config)
	m := Memory{servers: map[string]map[string]any{}, names: map[string]string{}}
	servers := Branch(config, "apps", "http", "servers")
	for _, own := range ours {
		if server := Branch(servers, nameOf(c, own)); server != nil {
			m.servers[own], m.names[own] = server, nameOf(c, own)
		}
	}
	m.outside = m.outsideOf(config, c)
	return m
}

// about returns the memory that is valid for a configuration. It is valid only if a client has edited our servers and
// nothing else. Any other configuration may be a new one, and what an older configuration had must not come back: it
// may have trusted other proxies.
func (m Memory) about(config map[string]any, c settings.Config) Memory {
	if m.outside == nil || !reflect.DeepEqual(m.outside, m.outsideOf(config, c)) {
		return Memory{}
	}
	return m
}

// outsideOf returns a copy of a configuration without our servers and their names.
func (m Memory) outsideOf(config map[string]any, c settings.Config) map[string]any {
	outside := Tree(config)
	servers := Branch(outside, "apps", "http", "servers")
	former := m.formerNames(servers, c)
	for _, own := range ours {
		delete(servers, own)
		delete(servers, nameOf(c, own))
		delete(servers, former[own])
	}
	if len(servers) == 0 {
		delete(Branch(outside, "apps", "http"), "servers")
	}
	delete(Branch(outside, "apps", "k8singress"), "server_names")
	return outside
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
	server := m.restored(name, existing)
	for key, value := range wanted {
		server[key] = merged(name, key, server[key], value, c)
	}
	return server
}

// restored returns a copy of a server with settings from the memory: all of them if the server is missing. A server
// that exists gets back only limits that it lacks. Other settings, such as trusted_proxies or the wrapper
// proxy_protocol, can make us trust more clients than the author of this server wanted.
func (m Memory) restored(name string, existing map[string]any) map[string]any {
	server, known := map[string]any{}, m.servers[name]
	if existing == nil {
		maps.Copy(server, known)
		return server
	}
	maps.Copy(server, existing)
	for key, value := range known {
		if server[key] == nil && (slices.Contains(adjustableKeys, key) || key == "trusted_proxies_strict") {
			server[key] = value
		}
	}
	return server
}

// lost returns the administrator's settings in the memory that a server lacks after Merge has changed it from existing
// to completed.
func (m Memory) lost(name string, existing, wanted, completed map[string]any) (keys []string) {
	known := m.servers[name]
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if completed[key] == nil {
			keys = append(keys, key)
		}
	}
	if administratorsWrappers(known["listener_wrappers"]) != nil && existing != nil && lacksWrappers(existing, wanted) {
		keys = append(keys, "listener_wrappers")
	}
	return keys
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
