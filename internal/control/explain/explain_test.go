package explain_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/control/explain"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// chain returns a chain whose only route has these handlers.
func chain(handlers string) json.RawMessage {
	return json.RawMessage(`[{"handle":[` + handlers + `]}]`)
}

// to returns a destination that only forwards requests to a backend.
func to(backend string) document.Destination {
	return document.Destination{Chain: chain(`{"handler":"k8singress_proxy"}`), Backend: backend}
}

// TestText checks the description of one host.
func TestText(t *testing.T) {
	backends := map[string]*document.Backend{
		"a/none/80": {}, "a/one/80": {Endpoints: []string{"192.0.2.1:80"}},
		"a/two/80": {Endpoints: []string{"192.0.2.1:80", "192.0.2.2:80"}}, "a/far/80": {ExternalName: "far.example:80"},
	}
	for name, c := range map[string]struct {
		host *document.Host
		want string
	}{
		"no routes": {&document.Host{}, ""},
		"an alias":  {&document.Host{AliasOf: "b.example"}, "  alias of b.example\n"},
		"client certificates": {
			&document.Host{ClientAuth: &ir.ClientAuth{Secret: ir.Name{Namespace: "a", Name: "ca"}}},
			"  client certificates {\"secret\":\"a/ca\"}\n",
		},
		"passthrough": {&document.Host{Passthrough: "a/one/80"}, "  TLS passthrough to a/one/80\n"},
		"passthrough to two": {
			&document.Host{PassthroughSplit: []document.StreamShare{
				{Backend: "a/one/80", Weight: 90}, {Backend: "a/two/80", Weight: 10},
			}},
			"  TLS passthrough to a/one/80, weight 90\n  TLS passthrough to a/two/80, weight 10\n",
		},
		"endpoints": {
			&document.Host{Routes: []*document.Route{
				{Type: "exact", Path: "/one", Origin: "Ingress/a/one", Destination: to("a/one/80")},
				{Type: "prefix", Path: "/two", Origin: "Ingress/a/two", Destination: to("a/two/80")},
				{Type: "prefix", Path: "/far", Origin: "Ingress/a/far", Destination: to("a/far/80")},
				{Type: "prefix", Path: "/none", Origin: "Ingress/a/none", Destination: to("a/none/80")},
				{Type: "prefix", Path: "/gone", Origin: "Ingress/a/gone", Destination: to("a/gone/80")},
			}},
			"  exact /one  (Ingress/a/one)\n    proxy\n    to a/one/80, 1 endpoint\n" +
				"  prefix /two  (Ingress/a/two)\n    proxy\n    to a/two/80, 2 endpoints\n" +
				"  prefix /far  (Ingress/a/far)\n    proxy\n    to a/far/80, at far.example:80\n" +
				"  prefix /none  (Ingress/a/none)\n    proxy\n    to a/none/80, 0 endpoints\n" +
				"  prefix /gone  (Ingress/a/gone)\n    proxy\n    to a/gone/80\n",
		},
		"handlers in order": {
			&document.Host{Routes: []*document.Route{{Type: "prefix", Path: "/", Origin: "Ingress/a/web",
				Destination: document.Destination{Chain: chain(
					`{"handler":"k8singress_source_ranges","allow":["::/0"]},` +
						`{"handler":"static_response","b":1,"a":2},{"handler":"k8singress_proxy"},7`)}}}},
			"  prefix /  (Ingress/a/web)\n    source ranges {\"allow\":[\"::/0\"]}\n" +
				"    static response {\"a\":2,\"b\":1}\n    proxy\n    7\n",
		},
		"a handler that responds always": {
			&document.Host{Routes: []*document.Route{{Type: "prefix", Path: "/", Origin: "Ingress/a/web",
				Destination: document.Destination{Chain: chain(`{"handler":"k8singress_direct_response",` +
					`"status_code":503},{"handler":"k8singress_proxy"}`), Backend: "a/one/80",
					TLS: &ir.BackendTLS{Secret: ir.Name{Namespace: "a", Name: "tls"}}}}}},
			"  prefix /  (Ingress/a/web)\n    direct response {\"status_code\":503}\n",
		},
		"durations": {
			&document.Host{Routes: []*document.Route{{Type: "prefix", Path: "/", Origin: "Ingress/a/web",
				Destination: document.Destination{Chain: chain(
					`{"handler":"k8singress_external_auth","cache_for":[{"for":300000000000,"statuses":[200]}],` +
						`"url":"http://a"},` +
						`{"handler":"k8singress_proxy","connect_timeout":1500000000,"max_body":1048576}`)}}}},
			"  prefix /  (Ingress/a/web)\n" +
				"    external auth {\"cache_for\":[{\"for\":\"5m0s\",\"statuses\":[200]}],\"url\":\"http://a\"}\n" +
				"    proxy {\"connect_timeout\":\"1.5s\",\"max_body\":1048576}\n",
		},
		"any of several handlers": {
			&document.Host{Routes: []*document.Route{{Type: "prefix", Path: "/", Origin: "Ingress/a/web",
				Destination: document.Destination{Chain: chain(`{"handler":"k8singress_any_of","filters":[` +
					`{"handler":"k8singress_access_rules","rules":[{"network":"all"}]},` +
					`{"handler":"k8singress_basic_auth","users":{"secret":"a/b"}}]}`)}}}},
			"  prefix /  (Ingress/a/web)\n    any of\n      access rules\n        deny all;\n" +
				"      basic auth {\"users\":{\"secret\":\"a/b\"}}\n",
		},
		"everything around a route": {
			&document.Host{
				HTTPSRedirect: &ir.HTTPSRedirect{Status: 301},
				Routes: []*document.Route{{
					Type: "regex", Path: "/x.*", Origin: "Ingress/a/web", Match: &ir.Conditions{Method: "GET"},
					HTTPSRedirect: &ir.HTTPSRedirect{Status: 308},
					ErrorPages: &document.ErrorPages{
						ErrorPages: ir.ErrorPages{Statuses: []int{404}}, Backend: "a/one/80",
					},
					Destination: document.Destination{
						Chain: chain(`{"handler":"k8singress_proxy"}`), Backend: "a/one/80",
						TLS: &ir.BackendTLS{Secret: ir.Name{Namespace: "a", Name: "tls"}},
					},
				}},
			},
			"  regex /x.*  (Ingress/a/web)\n    if {\"method\":\"GET\"}\n    redirect to HTTPS {\"status\":308}\n    " +
				"proxy\n    TLS to the endpoints {\"secret\":\"a/tls\"}\n    to a/one/80, 1 endpoint\n" +
				"    error pages {\"statuses\":[404],\"backend\":\"a/one/80\"}\n" +
				"  all other paths: redirect to HTTPS {\"status\":301}\n",
		},
		"shares": {
			&document.Host{Routes: []*document.Route{{Type: "prefix", Path: "/", Origin: "Ingress/a/web",
				Split: []*document.Share{
					{Weight: 3, Destination: to("a/one/80"), Fallback: true}, {Weight: 1, Destination: to("a/two/80")},
				}}}},
			"  prefix /  (Ingress/a/web)\n    weight 3, and requests whose backend has no endpoint\n      proxy\n" +
				"      to a/one/80, 1 endpoint\n    weight 1\n      proxy\n      to a/two/80, 2 endpoints\n",
		},
		"a refused chain": {
			&document.Host{Routes: []*document.Route{{Type: "prefix", Path: "/", Origin: "Ingress/a/web",
				Destination: document.Destination{Refused: "no such handler", Backend: "a/one/80"}}}},
			"  prefix /  (Ingress/a/web)\n    503: no such handler\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := &document.Live{Hosts: map[string]*document.Host{"a.example": c.host}, Backends: backends}
			if diff := cmp.Diff("a.example\n"+c.want, explain.Text(live, explain.Used{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestListenerGroups checks that the hosts of additional ports follow the other hosts.
func TestListenerGroups(t *testing.T) {
	host := &document.Host{Routes: []*document.Route{{Type: "location", Path: "/", Origin: "ConfigMap/a/global",
		Destination: document.Destination{Chain: chain(`{"handler":"k8singress_stub_status"}`), Backend: "a//"}}}}
	live := &document.Live{
		Hosts: map[string]*document.Host{"a.example": {}},
		ListenerGroups: map[string]*document.ListenerGroup{
			"http-snippet/81": {Listeners: []ir.Listener{{Port: 81, Protocol: ir.ListenerHTTP}},
				Hosts: map[string]*document.Host{"": host}},
			"b": {Hosts: map[string]*document.Host{"a.example": {}},
				Listeners: []ir.Listener{
					{Port: 82, Protocol: ir.ListenerHTTPS}, {Port: 83, Protocol: ir.ListenerHTTP},
				}},
		},
	}
	const want = "a.example\n\na.example on port 82 (HTTPS), 83 (HTTP)\n\n(all other hosts) on port 81 (HTTP)\n" +
		"  location /  (ConfigMap/a/global)\n    stub status\n"
	if diff := cmp.Diff(want, explain.Text(live, explain.Used{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHostsInOrder checks that the hosts are sorted, with an empty line between them.
func TestHostsInOrder(t *testing.T) {
	live := &document.Live{Hosts: map[string]*document.Host{"b.example": {}, "": {}, "*.example": {}}}
	for range 20 { // The order of a map is random.
		const want = "(all other hosts)\n\n*.example\n\nb.example\n"
		if got := explain.Text(live, explain.Used{}); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	if got := explain.Text(&document.Live{}, explain.Used{}); got != "" {
		t.Errorf("without hosts: %q", got)
	}
}
