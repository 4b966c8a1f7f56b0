package structure_test

import (
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// TestOverwrites checks which changes of our servers are reported. Merge overwrites exactly these, and keeps additions
// such as logs.
func TestOverwrites(t *testing.T) {
	for name, c := range map[string]struct {
		change func(servers map[string]any)
		want   []string
	}{
		"nothing": {func(map[string]any) {}, nil},
		"additions": {func(servers map[string]any) {
			server := servers[structure.HTTPServer].(map[string]any)
			for _, key := range []string{"logs", "errors", "trusted_proxies"} {
				server[key] = map[string]any{"source": "static"}
			}
			server["idle_timeout"] = "1s"
		}, nil},
		"settings": {func(servers map[string]any) {
			server := servers[structure.HTTPSServer].(map[string]any)
			server["listen"], server["automatic_https"] = []any{":1"}, map[string]any{}
			delete(server, "routes")
		}, []string{
			"k8singress_https.automatic_https",
			"k8singress_https.listen: use the option https",
			"k8singress_https.routes: use a chain, or a site with the k8singress directive",
		}},
		"wrappers": {func(servers map[string]any) {
			server := servers[structure.HTTPServer].(map[string]any)
			server["listener_wrappers"] = []any{}
			delete(server, "max_header_bytes")
		}, []string{
			"k8singress_http.listener_wrappers: use listener_wrappers of the global option servers",
			"k8singress_http.max_header_bytes: use max_header_size of the global option servers",
		}},
		"deleted": {func(servers map[string]any) { delete(servers, structure.HTTPServer) },
			[]string{"k8singress_http: use the option http"}},
		"added": {func(servers map[string]any) { servers[structure.HealthServer] = map[string]any{} },
			[]string{"k8singress_health: use the option health"}},
	} {
		t.Run(name, func(t *testing.T) {
			config, options := structure.Structure(settings.Config{}), settings.Config{}
			memory := structure.Remember(structure.Tree(config), options)
			c.change(structure.Branch(config, "apps", "http", "servers"))
			if got := memory.Overwrites(config, options); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if err := structure.Merge(config, options); err != nil {
				t.Fatal(err)
			}
			if got := memory.Overwrites(config, options); got != nil {
				t.Errorf("after Merge: %q", got)
			}
			if name == "additions" {
				kept := structure.Branch(config, "apps", "http", "servers", structure.HTTPServer)
				if kept["logs"] == nil || kept["errors"] == nil || kept["trusted_proxies"] == nil ||
					kept["idle_timeout"] != "1s" {
					t.Errorf("Merge did not keep the additions: %v", kept)
				}
			}
		})
	}
}
