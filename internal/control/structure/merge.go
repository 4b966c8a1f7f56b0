package structure

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// Merge adds the servers and settings that the options require to a Caddy configuration, which must have the form into
// which encoding/json decodes it. It keeps everything else: sites, their certificates, and the administrator's
// additions to our servers. Merging again changes nothing.
//
// Merge returns an error if the configuration conflicts with the required settings. The message is meant for the author
// of the configuration.
func Merge(config map[string]any, c settings.Config) error { return Memory{}.Merge(config, c) }

// Merge does the same as the function Merge, and restores settings of our servers that a client of the admin API has
// deleted.
func (m Memory) Merge(config map[string]any, c settings.Config) error {
	m = m.about(config, c)
	if err := m.useOwnNames(config, c); err != nil {
		return err
	}
	defer useNames(config, c)
	wanted := withOwnNames(c)
	apps, err := Child(config, "apps")
	if err != nil {
		return err
	}
	if err := clashes(config, c.WithDefaults()); err != nil {
		return err
	}
	if err := mergePersist(config); err != nil {
		return err
	}
	if err := m.mergeHTTP(apps, wanted, c); err != nil {
		return fmt.Errorf("apps.http: %w", err)
	}
	if err := mergeTLS(apps, wanted, c); err != nil {
		return fmt.Errorf("apps.tls: %w", err)
	}
	if err := mergePKI(apps, wanted); err != nil {
		return fmt.Errorf("apps.pki: %w", err)
	}
	mergeTickets(config, Branch(apps, "tls"))
	return nil
}

// mergePersist turns off autosaving of the configuration, so that Caddy cannot start with an outdated configuration,
// unless the configuration sets it.
func mergePersist(config map[string]any) error {
	load, err := Child(config, "admin", "config")
	if err != nil {
		return err
	}
	if load["persist"] == nil {
		load["persist"] = false
	}
	return nil
}

func (m Memory) mergeHTTP(apps, structure map[string]any, c settings.Config) error {
	http, err := Child(apps, "http")
	if err != nil {
		return err
	}
	mergeShutdown(http, Branch(structure, "apps", "http"), c)
	servers, err := Child(http, "servers")
	if err != nil {
		return err
	}
	wanted := Branch(structure, "apps", "http", "servers")
	for _, name := range ours {
		server, _ := wanted[name].(map[string]any)
		if server == nil {
			delete(servers, name)
			continue
		}
		var existing map[string]any
		if servers[name] != nil {
			if existing, err = Child(servers, name); err != nil {
				return err
			}
		}
		servers[name] = m.completed(name, existing, server, c)
	}
	return nil
}

// adjustableKeys lists the settings of our servers for HTTP and HTTPS that the configuration may change. The values in
// Structure are their defaults.
var adjustableKeys = []string{
	"idle_timeout", "max_header_bytes", "protocols", "read_header_timeout", "read_idle_timeout", "strict_sni_host",
	"write_idle_timeout",
}

// merged returns the value of a setting of one of our servers: the value in the configuration, if the configuration may
// change the setting, or else the wanted value. If the options turn off HTTP/3, the protocols for HTTPS do not contain
// it.
func merged(server, key string, value, wanted any, c settings.Config) any {
	if key == "listener_wrappers" {
		return withWrappers(wanted, value)
	}
	if value == nil || server == HealthServer || !slices.Contains(adjustableKeys, key) {
		return wanted
	}
	if protocols, ok := value.([]any); ok && key == "protocols" && server == HTTPSServer &&
		c.HTTP3 == settings.HTTP3Off {
		others := slices.DeleteFunc(slices.Clone(protocols), func(protocol any) bool { return protocol == "h3" })
		if len(others) == 0 {
			return wanted
		}
		return others
	}
	return value
}

// WithWrappers returns listener wrappers with which our server passes connections through the given other wrappers.
func WithWrappers(others []any) []any {
	return []any{map[string]any{"wrapper": "k8singress", "wrappers": others}}
}

// withWrappers returns the wanted listener wrappers of one of our servers, with the administrator's wrappers that
// existing contains.
func withWrappers(wanted, existing any) any {
	others := administratorsWrappers(existing)
	if others == nil {
		return wanted
	}
	all := slices.Clone(wanted.([]any))
	for i, wrapper := range all {
		if isOurs(wrapper) {
			all[i] = with(wrapper.(map[string]any), "wrappers", others)
		}
	}
	return all
}

// administratorsWrappers returns the administrator's wrappers, which are in the wrapper of ours. It returns nil if the
// list lacks our wrapper or the administrator has no wrappers.
func administratorsWrappers(listenerWrappers any) any {
	list, _ := listenerWrappers.([]any)
	i := slices.IndexFunc(list, isOurs)
	if i < 0 {
		return nil
	}
	return list[i].(map[string]any)["wrappers"]
}

// isOurs reports whether a listener wrapper is the one through which we serve HTTP and HTTPS.
func isOurs(wrapper any) bool {
	module, _ := wrapper.(map[string]any)
	return module["wrapper"] == "k8singress"
}

// mergeShutdown sets Caddy's grace_period and shutdown_delay. It does not overwrite existing values unless our options
// define them, because they apply to all servers.
func mergeShutdown(http, wanted map[string]any, c settings.Config) {
	given := c.WithoutDefaults()
	for key, isGiven := range map[string]bool{"shutdown_delay": given.ShutdownDelay != 0,
		"grace_period": given.ShutdownTimeout != 0} {
		if value, ok := wanted[key]; ok && (isGiven || http[key] == nil) {
			http[key] = value
		}
	}
}

func mergeTLS(apps, ours map[string]any, c settings.Config) error {
	tls, err := Child(apps, "tls")
	if err != nil {
		return err
	}
	wanted := Branch(ours, "apps", "tls")
	cache, err := Child(tls, "cache")
	if err != nil {
		return err
	}
	if capacity, ok := cache["capacity"].(float64); !ok || capacity < certificates {
		cache["capacity"] = float64(certificates)
	}
	automation, err := Child(tls, "automation")
	if err != nil {
		return err
	}
	policies, err := list(automation["policies"])
	if err != nil {
		return err
	}
	ourPolicies, _ := list(Branch(wanted, "automation")["policies"])
	ourPolicy := ourPolicies[0].(map[string]any)
	merged, err := mergePolicies(policies, ourPolicy, siteNames(apps))
	if err != nil {
		return err
	}
	automation["policies"] = merged
	onDemand, err := mergePermission(automation, c, merged[:len(merged)-1])
	if err != nil {
		return err
	}
	mergeOption(Branch(apps, "k8singress"), onDemand)
	return nil
}

// mergePermission adds the permission module for certificates on demand, unless the configuration has another one: the
// module in our options, or else our module, which denies all certificates. It removes our module if the
// configuration's own policies, which are the policies in others, get certificates in handshakes, because Caddy asks
// the same module for all policies. It returns the resulting settings for certificates on demand.
func mergePermission(automation map[string]any, c settings.Config, others []any) (map[string]any, error) {
	getsInHandshakes := slices.ContainsFunc(others, func(p any) bool {
		policy, _ := p.(map[string]any)
		return policy["on_demand"] == true || policy["get_certificate"] != nil
	})
	existing, err := Child(automation, "on_demand")
	if err != nil {
		return nil, err
	}
	unset := existing["permission"] == nil && existing["ask"] == nil
	switch {
	case unset && (!getsInHandshakes || c.OnDemand != nil):
		maps.Copy(existing, Tree(onDemand(c)))
	case getsInHandshakes && deniesAll(existing):
		delete(existing, "permission")
	}
	if len(existing) == 0 {
		delete(automation, "on_demand")
	}
	return existing, nil
}

// deniesAll reports whether the permission module for certificates on demand is ours, which denies all of them.
func deniesAll(onDemand map[string]any) bool {
	return reflect.DeepEqual(onDemand["permission"], map[string]any{"module": "k8singress"})
}

// mergeOption copies the permission module of the administrator to the option on_demand_permission of our app, so that
// the module decides about names of Ingresses, too. app is nil if the configuration does not contain our app.
func mergeOption(app, onDemand map[string]any) {
	const option = "on_demand_permission"
	ask, hasAsk := onDemand["ask"].(string)
	switch {
	case app == nil:
	case hasAsk:
		// Caddy treats the deprecated ask in this way, too.
		app[option] = map[string]any{"module": "http", "endpoint": ask}
	case onDemand["permission"] == nil || deniesAll(onDemand):
		delete(app, option)
	default:
		app[option] = onDemand["permission"]
	}
}

var errCatchAll = errors.New(
	"a site of the configuration gets certificates on demand for every name, but only k8singress may have a TLS " +
		"policy for every name: list the hosts of the site that has on_demand or get_certificate, or use the " +
		"annotation k8singress.io/on-demand-tls of an Ingress instead of a site")

// mergePolicies adds ours, the controller's catch-all TLS automation policy, to policies. Caddy allows only one
// catch-all policy, and ours does not obtain certificates in advance. Therefore mergePolicies also adds separate
// policies for names, the names of the configuration's own sites.
func mergePolicies(policies []any, ours map[string]any, names []string) ([]any, error) {
	var merged []any
	base := map[string]any{}
	for _, p := range policies {
		policy, ok := p.(map[string]any)
		if !ok {
			return nil, errors.New("a policy is not an object")
		}
		if subjects, _ := policy["subjects"].([]any); len(subjects) > 0 {
			merged = append(merged, policy)
			continue
		}
		base = maps.Clone(policy)
	}
	if managers := base["get_certificate"]; base["on_demand"] == true ||
		managers != nil && !reflect.DeepEqual(managers, ours["get_certificate"]) {
		return nil, errCatchAll
	}
	delete(base, "get_certificate")
	merged = append(merged, sitePolicies(base, uncovered(names, merged))...)
	// Remove the issuers: Ingresses must not get certificates from issuers that are configured for sites.
	delete(base, "issuers")
	maps.Copy(base, ours)
	return append(merged, base), nil
}

// Child returns the JSON object at a path of parent, and creates it if it does not exist.
func Child(parent map[string]any, path ...string) (map[string]any, error) {
	for _, key := range path {
		if parent[key] == nil {
			parent[key] = map[string]any{}
		}
		object, ok := parent[key].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is not an object", key)
		}
		parent = object
	}
	return parent, nil
}

// Branch returns the object at a path in a tree of JSON objects, or nil if it does not exist.
func Branch(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}

func list(v any) ([]any, error) {
	if v == nil {
		return nil, nil
	}
	values, ok := v.([]any)
	if !ok {
		return nil, errors.New("policies is not a list")
	}
	return slices.Clone(values), nil
}
