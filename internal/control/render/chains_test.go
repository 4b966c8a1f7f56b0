package render_test

import (
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestRoutesShareChainsOnlyWhenEqual checks that routes with different settings do not share a chain. With the chain of
// another route, a route could lose its protection.
func TestRoutesShareChainsOnlyWhenEqual(t *testing.T) {
	different := []ir.Route{
		{},
		{Filters: []ir.Filter{ir.HandlerChain{Name: "staff"}}},
		{Filters: []ir.Filter{ir.HandlerChain{Name: "limits"}}},
		{Filters: []ir.Filter{ir.HandlerChain{Name: "staff"}, ir.HandlerChain{Name: "limits"}}},
		{Filters: []ir.Filter{ir.DirectResponse{Status: 503}}},
		{Filters: []ir.Filter{ir.URLRewrite{Target: "/a"}}},
		{Filters: []ir.Filter{ir.URLRewrite{Target: "/b"}}},
		{Proxy: ir.Proxy{Attempts: ir.Attempts{On: []ir.RetryOn{}}}},
		{Proxy: ir.Proxy{Attempts: ir.Attempts{On: []ir.RetryOn{ir.RetryOn500}}}},
		{Proxy: ir.Proxy{Attempts: ir.Attempts{Connect: time.Second}}},
		{Proxy: ir.Proxy{Attempts: ir.Attempts{Tries: 7}}},
		{Proxy: ir.Proxy{Forwarding: ir.Forwarding{Host: "a.example"}}},
		{Proxy: ir.Proxy{Forwarding: ir.Forwarding{MaxBody: ir.NoLimit}}},
		{Proxy: ir.Proxy{Forwarding: ir.Forwarding{Protocol: ir.FastCGI, Index: "index.php"}}},
		{Proxy: ir.Proxy{Forwarding: ir.Forwarding{Protocol: ir.FastCGI, Index: "index.php"},
			Params: map[string]string{"A": "b"}}},
	}
	host := &ir.VirtualHost{Host: "h"}
	for range 3 {
		for i := range different {
			route := different[i]
			route.Backends = ir.To(&ir.Backend{ID: "default/web/80"})
			host.Routes = append(host.Routes, &route)
		}
	}
	routes := live(host)
	for i, route := range routes {
		alone := live(&ir.VirtualHost{Host: "h", Routes: host.Routes[i : i+1]})
		if string(route.Chain) != string(alone[0].Chain) {
			t.Errorf("route %d has %s, and alone %s", i, route.Chain, alone[0].Chain)
		}
		for j := range i % len(different) {
			if string(routes[j].Chain) == string(route.Chain) {
				t.Errorf("routes %d and %d have the same chain: %s", j, i, route.Chain)
			}
		}
	}
}

// TestEqualRoutesShareOneChain checks that routes with equal settings share the same slice of JSON, and not only equal
// bytes.
func TestEqualRoutesShareOneChain(t *testing.T) {
	host := &ir.VirtualHost{Host: "h"}
	for range 3 {
		host.Routes = append(host.Routes, &ir.Route{
			Filters:  []ir.Filter{ir.HandlerChain{Name: "staff"}},
			Proxy:    ir.Proxy{Attempts: ir.Attempts{On: []ir.RetryOn{ir.RetryOn500}}},
			Backends: ir.To(&ir.Backend{ID: "default/web/80"}),
		})
	}
	routes := live(host)
	for _, route := range routes[1:] {
		if &route.Chain[0] != &routes[0].Chain[0] {
			t.Error("the JSON is there twice")
		}
	}
}

func live(host *ir.VirtualHost) []*document.Route {
	return renderer().Live(
		&ir.Config{ListenerGroup: ir.ListenerGroup{VirtualHosts: []*ir.VirtualHost{host}}}).Hosts[host.Host].Routes
}
