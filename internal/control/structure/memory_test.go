package structure_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// lost is the end of the texts about settings that are not restored.
const lost = "lost until the next reload of the Caddyfile"

// TestMemory checks that servers which a client of the admin API has deleted are put back with the settings that the
// administrator had added to them. Servers that the client has changed get back only limits: settings of the client
// stay, and the server trusts no proxies that the client has removed. The log names what was put back, and what is
// lost. want is a merge patch for the server for HTTP.
func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		change func(config, servers, server map[string]any)
		want   string
		logged []string
	}{
		"deleted": {func(_, servers, _ map[string]any) { delete(servers, "web") }, `{}`,
			[]string{"web: use the option http"}},
		"all servers deleted": {func(config, _, _ map[string]any) {
			delete(structure.Branch(config, "apps", "http"), "servers")
		}, `{}`, []string{"web: use the option http", "k8singress_https: use the option https"}},
		"replaced": {func(_, servers, server map[string]any) {
			servers["web"] = map[string]any{
				"listen": server["listen"], "listener_wrappers": server["listener_wrappers"], "idle_timeout": 3.0,
				"automatic_https": server["automatic_https"], "protocols": server["protocols"],
			}
		}, `{"idle_timeout": 3, "errors": null, "logs": null, "trusted_proxies": null}`, []string{
			"web.max_header_bytes: use max_header_size of the global option servers",
			"web.read_header_timeout: use timeouts of the global option servers",
			"web.read_idle_timeout: use timeouts of the global option servers",
			"web.routes: use a chain, or a site with the k8singress directive",
			"web.strict_sni_host: use strict_sni_host of the global option servers",
			"web.trusted_proxies_strict",
			"web.write_idle_timeout: use timeouts of the global option servers",
			"web.errors: " + lost, "web.logs: " + lost, "web.trusted_proxies: " + lost,
		}},
		"a key of ours missing": {func(_, _, server map[string]any) {
			delete(server, "automatic_https")
			delete(server, "trusted_proxies")
		}, `{"trusted_proxies": null}`, []string{"web.automatic_https", "web.trusted_proxies: " + lost}},
		"wrappers": {func(_, _, server map[string]any) { server["listener_wrappers"] = []any{} },
			`{"listener_wrappers": [{"wrapper": "k8singress"}]}`, []string{
				"web.listener_wrappers: use listener_wrappers of the global option servers",
				"web.listener_wrappers: " + lost,
			}},
		"wrappers of the client": {func(_, _, server map[string]any) {
			server["listener_wrappers"] = structure.WithWrappers([]any{map[string]any{"wrapper": "tls"}})
		}, `{"listener_wrappers": [{"wrapper": "k8singress", "wrappers": [{"wrapper": "tls"}]}]}`, nil},
		"no wrappers": {func(_, _, server map[string]any) {
			server["listener_wrappers"] = []any{map[string]any{"wrapper": "k8singress"}}
		}, `{"listener_wrappers": [{"wrapper": "k8singress"}]}`, nil},
		"a limit": {func(_, _, server map[string]any) { delete(server, "max_header_bytes") }, `{}`,
			[]string{"web.max_header_bytes: use max_header_size of the global option servers"}},
		"additions of the client": {func(_, _, server map[string]any) {
			server["idle_timeout"], server["logs"] = 5.0, map[string]any{"skip_hosts": []any{"a"}}
			delete(server, "trusted_proxies")
		}, `{"idle_timeout": 5, "logs": {"skip_hosts": ["a"]}, "trusted_proxies": null}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			config, options := customized(t)
			memory, changed := structure.Remember(config, options), structure.Tree(config)
			servers := structure.Branch(changed, "apps", "http", "servers")
			c.change(changed, servers, structure.Branch(servers, "web"))
			if got := memory.Overwrites(changed, options); !slices.Equal(got, c.logged) {
				t.Errorf("logged %q, want %q", got, c.logged)
			}
			if err := memory.Merge(changed, options); err != nil {
				t.Fatal(err)
			}
			servers = structure.Branch(config, "apps", "http", "servers")
			patched(t, structure.Branch(servers, "web"), c.want)
			if diff := cmp.Diff(servers, structure.Branch(changed, "apps", "http", "servers")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			once := encode(t, changed)
			if err := structure.Merge(changed, options); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once, encode(t, changed)); diff != "" {
				t.Errorf("merging again changes (-once +twice):\n%s", diff)
			}
		})
	}
}

// customized returns a configuration in which the administrator has added settings to the server for HTTP, and its
// options.
func customized(t *testing.T) (map[string]any, settings.Config) {
	t.Helper()
	options := settings.Config{ServerNames: map[string]string{"http": "web"}}
	config := structure.Structure(options)
	patched(t, structure.Branch(config, "apps", "http", "servers", "web"), `{
		"errors": {"routes": []}, "logs": {}, "max_header_bytes": 8000, "read_header_timeout": 5000000000,
		"strict_sni_host": true, "trusted_proxies": {"source": "static", "ranges": ["192.0.2.0/24"]},
		"trusted_proxies_strict": 1,
		"listener_wrappers": [{"wrapper": "k8singress", "wrappers": [{"wrapper": "proxy_protocol"}]}]
	}`)
	return config, options
}

// patched changes an object as a JSON merge patch (RFC 7396) without nested objects says.
func patched(t *testing.T, object map[string]any, patch string) {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(patch), &all); err != nil {
		t.Fatal(err)
	}
	for key, value := range all {
		if object[key] = value; value == nil {
			delete(object, key)
		}
	}
}

// TestMemoryEnds checks that a new configuration gets nothing from the memory of an older one, also if it lacks one of
// our servers. Only a configuration in which everything else is the same is not new. The log says what is lost if the
// memory does not hold a server.
func TestMemoryEnds(t *testing.T) {
	const deleted, all = "web: use the option http", "what the global option servers sets for it is " + lost
	for name, c := range map[string]struct {
		change func(config, servers map[string]any)
		want   []string
	}{
		"only the app": {func(config, _ map[string]any) {
			apps := structure.Branch(config, "apps")
			config["apps"] = map[string]any{"k8singress": apps["k8singress"]}
		}, nil},
		"a site": {func(_, servers map[string]any) {
			delete(servers, "web")
			servers["srv0"] = map[string]any{"listen": []any{":8080"}}
		}, []string{deleted, "web: " + all}},
		"an option": {func(config, servers map[string]any) {
			delete(servers, "web")
			structure.Branch(config, "apps", "k8singress")["shutdown_delay"] = 1.0
		}, []string{deleted, "web: " + all}},
		"the HTTP app": {func(config, _ map[string]any) { delete(structure.Branch(config, "apps"), "http") },
			[]string{deleted, "web: " + all, "k8singress_https: use the option https", "k8singress_https: " + all}},
	} {
		t.Run(name, func(t *testing.T) {
			config, options := customized(t)
			memory, loaded := structure.Remember(config, options), structure.Tree(config)
			c.change(loaded, structure.Branch(loaded, "apps", "http", "servers"))
			if got := memory.Overwrites(loaded, options); !slices.Equal(got, c.want) {
				t.Errorf("logged %q, want %q", got, c.want)
			}
			if err := memory.Merge(loaded, options); err != nil {
				t.Fatal(err)
			}
			servers := structure.Branch(loaded, "apps", "http", "servers")
			delete(servers, "srv0")
			want := structure.Branch(structure.Structure(options), "apps", "http", "servers")
			if diff := cmp.Diff(want, servers); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for name, c := range map[string]struct {
		change func(servers map[string]any)
		want   []string
	}{
		"deleted": {func(servers map[string]any) { delete(servers, "web") }, []string{deleted, "web: " + all}},
		"an address": {func(servers map[string]any) { structure.Branch(servers, "web")["listen"] = []any{":1"} },
			[]string{"web.listen: use the option http"}},
	} {
		config, options := customized(t)
		c.change(structure.Branch(config, "apps", "http", "servers"))
		if got := (structure.Memory{}).Overwrites(config, options); !slices.Equal(got, c.want) {
			t.Errorf("%s: logged %q, want %q", name, got, c.want)
		}
	}
}

// TestMemoryOfNames checks that our servers are found if a client of the admin API has changed their names in the
// options, or settings by which they are recognized without the memory.
func TestMemoryOfNames(t *testing.T) {
	for name, c := range map[string]struct {
		names  map[string]string
		change func(web map[string]any)
	}{
		"another name":     {map[string]string{"http": "other"}, func(map[string]any) {}},
		"the default name": {nil, func(map[string]any) {}},
		"exchanged names":  {map[string]string{"http": "secure", "https": "web"}, func(map[string]any) {}},
		"replaced": {map[string]string{"http": "web", "https": "secure"},
			func(web map[string]any) {
				listen := web["listen"]
				clear(web)
				web["listen"] = listen
			}},
		"another name without wrappers": {map[string]string{"http": "other", "https": "secure"},
			func(web map[string]any) { delete(web, "listener_wrappers") }},
	} {
		t.Run(name, func(t *testing.T) {
			before := settings.Config{ServerNames: map[string]string{"http": "web", "https": "secure"}}
			config, after := structure.Structure(before), settings.Config{ServerNames: c.names}
			memory := structure.Remember(structure.Tree(config), before)
			c.change(structure.Branch(config, "apps", "http", "servers", "web"))
			if err := memory.Merge(config, after); err != nil {
				t.Fatal(err)
			}
			want := structure.Branch(structure.Structure(after), "apps", "http", "servers")
			if diff := cmp.Diff(want, structure.Branch(config, "apps", "http", "servers")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestMemoryKeepsSites checks that a site is kept if it has a name that one of our servers had before. If the options
// still give this name to our server, that is an error.
func TestMemoryKeepsSites(t *testing.T) {
	before := settings.Config{ServerNames: map[string]string{"http": "web"}}
	route := map[string]any{"handle": []any{map[string]any{"handler": "static_response"}}}
	for name, c := range map[string]struct {
		names map[string]string
		// own is the name of our server in the configuration, or "" if it is deleted.
		own, want string
	}{
		"the default name": {nil, structure.HTTPServer, ""},
		"another name":     {map[string]string{"http": "other"}, "other", ""},
		"deleted":          {map[string]string{"http": "other"}, "", ""},
		"the same name": {before.ServerNames, "", `the name "web" for the server of the option http is taken by ` +
			"another server: choose another name"},
	} {
		t.Run(name, func(t *testing.T) {
			config, after := structure.Structure(before), settings.Config{ServerNames: c.names}
			memory := structure.Remember(config, before)
			servers := structure.Branch(config, "apps", "http", "servers")
			if c.own != "" {
				servers[c.own] = servers["web"]
				delete(structure.Branch(servers, c.own), "idle_timeout")
			}
			site := map[string]any{"listen": []any{":8080"}, "routes": []any{route}}
			servers["web"] = structure.Tree(site)
			text := ""
			if err := memory.Merge(config, after); err != nil {
				text = err.Error()
			}
			if text != c.want {
				t.Errorf("the error is %q, want %q", text, c.want)
			}
			want := structure.Branch(structure.Structure(after), "apps", "http", "servers")
			if want["web"] = site; c.want != "" {
				want = servers
			}
			if diff := cmp.Diff(want, servers); diff != "" || !cmp.Equal(site, servers["web"]) {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
