package engine

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/shrinking"
)

// TestHash checks that the hash depends only on the configuration, not on the order of changes or on endpoints.
func TestHash(t *testing.T) {
	host := func(name string) *document.Host {
		return &document.Host{Routes: []*document.Route{{Path: "/" + name}}}
	}
	steps := func(deltas ...*document.Delta) uint64 {
		h := configHash{parts: new(shrinking.Map[string, uint64])}
		for _, d := range deltas {
			h.update(d)
		}
		return h.sum
	}
	a := &document.Delta{Hosts: map[string]*document.Host{"a.example": host("a")}}
	b := &document.Delta{Hosts: map[string]*document.Host{"b.example": host("b")}, Global: &ir.Global{}}
	backend := func(endpoint string) *document.Delta {
		return &document.Delta{Backends: map[string]*document.Backend{"x": {Endpoints: []string{endpoint}}}}
	}
	all := steps(a, b, backend("192.0.2.1:80"))
	if all == 0 || all != steps(backend("192.0.2.2:80"), b, a) {
		t.Errorf("the hash is %d, and in another order %d", all, steps(backend("192.0.2.2:80"), b, a))
	}
	gone := &document.Delta{Hosts: map[string]*document.Host{"a.example": nil},
		Backends: map[string]*document.Backend{"x": nil}}
	if got := steps(a, b, backend("192.0.2.1:80"), gone); got != steps(b) || got == all {
		t.Errorf("after removals, the hash is %d, want %d", got, steps(b))
	}
	changed := &document.Delta{Hosts: map[string]*document.Host{"a.example": host("b")}}
	if got := steps(a, changed); got == steps(a) {
		t.Errorf("a change of a host leaves the hash %d", got)
	}
	var off configHash
	if off.update(a); off.sum != 0 {
		t.Error("a hash that is not needed is computed")
	}
}
