package render_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/control/render"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// configuration returns n virtual hosts with a route and a backend each, in the order of a translation.
func configuration(n int) *ir.Config {
	c := &ir.Config{Global: &ir.Global{}}
	for i := range n {
		backend := &ir.Backend{ID: fmt.Sprintf("ns/web-%05d/80", i), Namespace: "ns",
			Service: fmt.Sprintf("web-%05d", i)}
		c.Backends = append(c.Backends, backend)
		c.VirtualHosts = append(c.VirtualHosts, virtualHost(i, "/", backend))
	}
	return c
}

func virtualHost(i int, path string, backend *ir.Backend) *ir.VirtualHost {
	return &ir.VirtualHost{Host: fmt.Sprintf("host-%05d.example.com", i), Routes: []*ir.Route{{
		Match: ir.Match{PathMatch: ir.PathMatch{Type: ir.MatchPrefix, Path: path}}, Backends: ir.To(backend),
		Origin: ir.Origin{Kind: "Ingress", Namespace: "ns", Name: fmt.Sprintf("web-%05d", i)},
	}}}
}

func renderer() *render.Renderer {
	endpoints := []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"}
	return &render.Renderer{Endpoints: func(*ir.Backend) []string { return endpoints }}
}

// BenchmarkFull10000 renders everything, as during startup.
func BenchmarkFull10000(b *testing.B) {
	r, c := renderer(), configuration(10_000)
	b.ReportAllocs()
	for b.Loop() {
		if len(r.Live(c).Hosts) != 10_000 {
			b.Fatal("hosts are missing")
		}
	}
}

// BenchmarkOneOf10000 renders the change of one host.
func BenchmarkOneOf10000(b *testing.B) {
	r, from := renderer(), configuration(10_000)
	to := *from
	to.VirtualHosts = slices.Clone(from.VirtualHosts)
	to.VirtualHosts[77] = virtualHost(77, "/changed", from.Backends[77])
	b.ReportAllocs()
	for b.Loop() {
		if len(r.Delta(from, &to).Hosts) != 1 {
			b.Fatal("the change is not one host")
		}
	}
}
