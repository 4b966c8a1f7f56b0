package structure

import (
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/certmagic"
)

// siteNames returns the names of the configuration's own sites for which Caddy's automatic HTTPS manages certificates.
// Some of them may already have a TLS automation policy.
func siteNames(apps map[string]any) []string {
	names := map[string]bool{}
	for name, s := range Branch(apps, "http", "servers") {
		server, _ := s.(map[string]any)
		auto := Branch(server, "automatic_https")
		if slices.Contains(ours, name) || auto["disable"] == true || auto["disable_certificates"] == true {
			continue
		}
		for host := range hosts(server) {
			names[host] = true
		}
		for _, skipped := range append(texts(auto["skip"]), texts(auto["skip_certificates"])...) {
			delete(names, skipped)
		}
	}
	for _, name := range texts(Branch(apps, "tls", "certificates")["automate"]) {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// hosts returns the hosts in the matchers of the server's top-level routes. Like Caddy, it does not search nested
// routes.
func hosts(server map[string]any) map[string]bool {
	found := map[string]bool{}
	routes, _ := server["routes"].([]any)
	for _, r := range routes {
		route, _ := r.(map[string]any)
		sets, _ := route["match"].([]any)
		for _, s := range sets {
			set, _ := s.(map[string]any)
			for _, host := range texts(set["host"]) {
				found[host] = true
			}
		}
	}
	return found
}

func texts(v any) []string {
	values, _ := v.([]any)
	var result []string
	for _, value := range values {
		if text, ok := value.(string); ok {
			result = append(result, text)
		}
	}
	return result
}

// uncovered returns the names that are not a subject of any policy.
func uncovered(names []string, policies []any) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(policies, func(p any) bool {
			policy, _ := p.(map[string]any)
			return slices.ContainsFunc(texts(policy["subjects"]), func(subject string) bool {
				return certmagic.MatchWildcard(name, subject)
			})
		})
	})
}

// sitePolicies returns TLS automation policies for the given site names. With them, Caddy manages the certificates of
// the sites as it would by default if base were the catch-all policy.
func sitePolicies(base map[string]any, names []string) []any {
	var public, internal []any
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, ".ts.net"):
			// Omit the name: Caddy gets its certificate from Tailscale, regardless of the policy.
		case isInternal(name, base):
			internal = append(internal, name)
		default:
			public = append(public, name)
		}
	}
	var policies []any
	if len(public) > 0 {
		policies = append(policies, with(base, "subjects", public))
	}
	if len(internal) > 0 {
		issuers := []any{map[string]any{"module": "internal"}}
		policies = append(policies, with(with(base, "subjects", internal), "issuers", issuers))
	}
	return policies
}

func isInternal(name string, base map[string]any) bool {
	if strings.Contains(name, "{") {
		// The name contains a placeholder, whose value is not known here, so assume that it is a public name.
		return false
	}
	return !certmagic.SubjectQualifiesForPublicCert(name) || certmagic.SubjectIsIP(name) && base["issuers"] == nil
}

func with(policy map[string]any, key string, value any) map[string]any {
	copied := maps.Clone(policy)
	copied[key] = value
	return copied
}
