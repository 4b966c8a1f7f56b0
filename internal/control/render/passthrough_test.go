package render_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/control/render"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestPassthrough checks how the backends of a host with TLS passthrough are rendered, for a single backend and for
// several backends with weights.
func TestPassthrough(t *testing.T) {
	one := ir.WeightedBackend{Backend: &ir.Backend{ID: "shop/one/443"}, Weight: 3}
	two := ir.WeightedBackend{Backend: &ir.Backend{ID: "shop/two/443"}, Weight: 1, Fallback: true}
	for want, backends := range map[string][]ir.WeightedBackend{
		`{"routes":[],"passthrough":"shop/one/443"}`: {one},
		`{"routes":[],"passthrough_split":[{"backend":"shop/one/443","weight":3},{"backend":"shop/two/443",` +
			`"weight":1,"fallback":true}]}`: {one, two},
	} {
		host := &ir.VirtualHost{Host: "shop.example",
			Passthrough: &ir.StreamRoute{Protocol: ir.TCP, Backends: backends}}
		live := (&render.Renderer{}).Live(
			&ir.Config{ListenerGroup: ir.ListenerGroup{VirtualHosts: []*ir.VirtualHost{host}}})
		if got := string(document.Encode(live.Hosts["shop.example"])); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
