package explain_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/control/explain"
	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/l4app"
)

// TestPorts checks the description of TCP and UDP ports, which follow the hosts.
func TestPorts(t *testing.T) {
	backend := func(id string, weight int) ir.WeightedBackend {
		return ir.WeightedBackend{Backend: &ir.Backend{ID: id}, Weight: weight}
	}
	plain := &ir.StreamRoute{
		Protocol: ir.UDP, Port: 53, Origin: ir.Ref{Kind: "ConfigMap", Namespace: "a", Name: "udp"},
		Backends: []ir.WeightedBackend{backend("a/dns/53", 1)},
	}
	all := &ir.StreamRoute{
		Protocol: ir.TCP, Port: 5432, Origin: ir.Ref{Kind: "Service", Namespace: "a", Name: "db"},
		AcceptProxy: true, Chains: []string{"waf"}, TLS: &ir.StreamTLS{Secret: ir.Name{Namespace: "a", Name: "tls"}},
		SendProxy: ir.ProxyV2, Policy: ir.StreamPolicy{IdleTimeout: time.Hour},
		Backends: []ir.WeightedBackend{backend("a/db/5432", 9), backend("a/gone/5432", 1)},
	}
	all.Backends[0].Fallback = true
	live := &document.Live{
		Hosts:    map[string]*document.Host{"a.example": {}},
		Ports:    map[string]*document.Port{"udp/53": l4app.Render(plain, nil), "tcp/5432": l4app.Render(all, nil)},
		Backends: map[string]*document.Backend{"a/db/5432": {Endpoints: []string{"192.0.2.1:5432"}}, "a/dns/53": {}},
	}
	const want = "a.example\n\nTCP port 5432  (Service/a/db)\n  proxy protocol\n  chain {\"name\":\"waf\"}\n" +
		"  tls {\"secret\":\"a/tls\"}\n" +
		"  forward {\"policy\":{\"idle_timeout\":\"1h0m0s\"},\"proxy_protocol\":\"v2\"}\n" +
		"  weight 9, and connections whose backend has no endpoint\n    to a/db/5432, 1 endpoint\n" +
		"  weight 1\n    to a/gone/5432\n\nUDP port 53  (ConfigMap/a/udp)\n  to a/dns/53, 0 endpoints\n"
	if diff := cmp.Diff(want, explain.Text(live, explain.Used{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUsed checks the description of the Services that Caddy modules use.
func TestUsed(t *testing.T) {
	port := func(name, number string) ir.FollowedPort {
		return ir.FollowedPort{ServicePort: ir.ServicePort{Service: ir.Name{Namespace: "a", Name: name}, Port: number},
			Protocol: ir.TCP}
	}
	used := explain.Used{
		Uses: []structure.Use{
			{FollowedPort: port("db", "pg"), By: "layer4 server s"},
			{FollowedPort: port("gone", ""), By: "layer4 server s", Match: []string{"tls", "http"}},
			{FollowedPort: port("db", "pg"), By: "the site b"},
		},
		Backends: []ir.FollowedBackend{
			{FollowedPort: port("db", "pg"), Backend: &ir.Backend{ID: "a/db/5432"}},
			{FollowedPort: port("gone", ""), Backend: &ir.Backend{ID: "a/gone/"}, Problem: "it does not exist"},
		},
	}
	live := &document.Live{Backends: map[string]*document.Backend{"a/db/5432": {}}}
	const want = "layer4 server s\n  to a/db/5432, 0 endpoints\n" +
		"  if tls\n    if http\n      to a/gone: it does not exist\n" +
		"\nthe site b\n" +
		"  to a/db/5432, 0 endpoints\n"
	if diff := cmp.Diff(want, explain.Text(live, used)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
