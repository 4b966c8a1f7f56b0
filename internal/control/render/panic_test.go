package render_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/control/render"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// odd is a filter that the renderer does not know, so rendering it panics.
type odd struct{ ir.Filter }

// TestPanicInARouteIsIsolated checks that a route that cannot be rendered returns 503, and that other routes and hosts
// are not affected.
func TestPanicInARouteIsIsolated(t *testing.T) {
	backend := &ir.Backend{ID: "shop/web/80"}
	of := func(path string, filters ...ir.Filter) *ir.Route {
		return &ir.Route{
			Match: ir.Match{PathMatch: ir.PathMatch{Type: ir.MatchPrefix, Path: path}}, Backends: ir.To(backend),
			Filters: filters,
			Origin:  ir.Ref{Kind: "Ingress", Namespace: "shop", Name: "web"},
		}
	}
	bare := of("/bare")
	bare.Backends = ir.To(nil)
	r := &render.Renderer{Endpoints: func(*ir.Backend) []string { return nil }}
	d := r.Live(&ir.Config{Global: &ir.Global{}, ListenerGroup: ir.ListenerGroup{VirtualHosts: []*ir.VirtualHost{
		{Host: "a.example", Routes: []*ir.Route{of("/one"), of("/odd", ir.HandlerChain{Name: "staff"}, odd{}),
			bare, of("/two")}},
		{Host: "b.example", Routes: []*ir.Route{of("/")}},
	}}})
	for _, route := range append(d.Hosts["a.example"].Routes, d.Hosts["b.example"].Routes...) {
		if bad := route.Path == "/odd" || route.Path == "/bare"; bad != (route.Refused != "") ||
			bad != (route.Chain == nil) {
			t.Errorf("%+v", route)
		}
	}
	refused := d.Hosts["a.example"].Routes[1]
	if refused.Access != "" || refused.Origin != "Ingress/shop/web" ||
		!strings.Contains(refused.Refused, "render_test.odd") {
		t.Errorf("the refused route is %+v", refused)
	}
}

// TestAccess checks that routes have the same value of Access if and only if they accept the same clients.
func TestAccess(t *testing.T) {
	backend := &ir.Backend{ID: "shop/web/80"}
	access := func(attempts ir.Attempts, filters ...ir.Filter) string {
		r := &render.Renderer{Endpoints: func(*ir.Backend) []string { return nil }}
		d := r.Live(&ir.Config{ListenerGroup: ir.ListenerGroup{VirtualHosts: []*ir.VirtualHost{{
			Host: "a.example", Routes: []*ir.Route{{Backends: ir.To(backend), Filters: filters,
				Proxy: ir.Proxy{Attempts: attempts}}},
		}}}})
		return d.Hosts["a.example"].Routes[0].Access
	}
	rewrite, staff, audit := ir.URLRewrite{Target: "/x"}, ir.HandlerChain{Name: "staff"}, ir.HandlerChain{Name: "audit"}
	none := access(ir.Attempts{})
	if none != "" || access(ir.Attempts{Tries: 7}, rewrite) != none {
		t.Error("a route that lets in everybody has an access")
	}
	if access(ir.Attempts{}, staff) != access(ir.Attempts{Tries: 7}, rewrite, staff) {
		t.Error("a rewrite makes the access another one")
	}
	seen := map[string]bool{"": true}
	for _, filters := range [][]ir.Filter{
		{staff}, {audit}, {staff, audit}, {audit, staff}, {ir.DirectResponse{Status: 503}},
		{staff, ir.DirectResponse{Status: 503}},
		{ir.DirectResponse{Status: 403}},
	} {
		got := access(ir.Attempts{}, filters...)
		if seen[got] {
			t.Errorf("%v has the access of others, %q", filters, got)
		}
		seen[got] = true
	}
}
