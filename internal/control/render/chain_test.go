package render_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/control/render"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestChainsComeInTheirOrder checks that handlers that reject clients come before handlers that change the request or
// respond to it.
func TestChainsComeInTheirOrder(t *testing.T) {
	backend := &ir.Backend{ID: "default/web/80"}
	route := &ir.Route{
		Match: ir.Match{PathMatch: ir.PathMatch{Type: ir.MatchPrefix, Path: "/"}},
		Filters: []ir.Filter{ir.HandlerChain{Name: "staff"}, ir.HandlerChain{Name: "limits"},
			ir.URLRewrite{Target: "/new"}},
		Backends: ir.To(backend),
	}
	renderer := &render.Renderer{Endpoints: func(*ir.Backend) []string { return nil }}
	live := renderer.Live(&ir.Config{
		ListenerGroup: ir.ListenerGroup{VirtualHosts: []*ir.VirtualHost{{Host: "h", Routes: []*ir.Route{route}}}},
		Backends:      []*ir.Backend{backend},
	})
	const want = `[{"handle":[{"handler":"k8singress_chain","name":"staff"},{"handler":"k8singress_chain",` +
		`"name":"limits"},` +
		`{"handler":"k8singress_rewrite","target":"/new"},`
	if got := string(live.Hosts["h"].Routes[0].Chain); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s...", got, want)
	}
}
