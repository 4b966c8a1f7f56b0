package render_test

import (
	"encoding/json"
	"flag"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/control/render"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var update = flag.Bool("update", false, "rewrite the expected document")

// groups returns a model with listener groups, whose hosts have the same names as other hosts.
func groups() *ir.Config {
	host := func(name, backend string) *ir.VirtualHost {
		b := &ir.Backend{ID: backend}
		return &ir.VirtualHost{Host: name, Routes: []*ir.Route{{
			Match: ir.Match{PathMatch: ir.PathMatch{Type: ir.MatchPrefix, Path: "/"}}, Backends: ir.To(b),
			Origin: ir.ParseRef("HTTPRoute/shop/web"),
		}}}
	}
	return &ir.Config{
		ListenerGroup: ir.ListenerGroup{VirtualHosts: []*ir.VirtualHost{host("shop.example", "shop/web/80")}},
		MoreGroups: []*ir.ListenerGroup{
			{
				Name: "Gateway/shop/inside", Origin: ir.ParseRef("Gateway/shop/inside"),
				Listeners: []ir.Listener{{Name: "http", Port: 8080, Protocol: ir.ListenerHTTP}},
				VirtualHosts: []*ir.VirtualHost{host("*.example", "shop/inside/80"),
					host("shop.example", "shop/inside/80")},
			},
			{
				Name: "Gateway/shop/outside", Origin: ir.ParseRef("Gateway/shop/outside"),
				Listeners: []ir.Listener{{
					Name: "https", Port: 8443, Protocol: ir.ListenerHTTPS, Hostname: "*.example",
					Certificates: []ir.Name{{Namespace: "shop", Name: "ecdsa"}, {Namespace: "shop", Name: "rsa"}},
				}},
				VirtualHosts: []*ir.VirtualHost{host("shop.example", "shop/outside/80")},
			},
		},
	}
}

// TestListenerGroups checks how listener groups are rendered, and that the document stays the same when it is encoded
// and decoded.
func TestListenerGroups(t *testing.T) {
	written := (&render.Renderer{}).Live(groups())
	text, err := json.MarshalIndent(written, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	fixture.Generated(t, "testdata/listeners.json", string(text)+"\n", *update)
	var again document.Live
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(document.Encode(written)), string(document.Encode(&again))); diff != "" {
		t.Errorf("it reads as another document (-written +read):\n%s", diff)
	}
}

// TestChangedListenerGroups checks that a delta contains only the listener groups that have changed.
func TestChangedListenerGroups(t *testing.T) {
	before := groups()
	after := *before
	other := *before.MoreGroups[1]
	other.Listeners = nil
	after.MoreGroups = []*ir.ListenerGroup{{Name: "Gateway/shop/another"}, &other}
	delta := (&render.Renderer{}).Delta(before, &after)
	inside, gone := delta.ListenerGroups["Gateway/shop/inside"]
	if len(delta.ListenerGroups) != 3 || !gone || inside != nil ||
		len(delta.ListenerGroups[other.Name].Listeners) != 0 || len(delta.Hosts) != 0 {
		t.Errorf("the change is %s", document.Encode(delta))
	}
	if delta := (&render.Renderer{}).Delta(before, before); !delta.Empty() {
		t.Errorf("without a change there is %s", document.Encode(delta))
	}
}
