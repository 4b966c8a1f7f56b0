package ir_test

import (
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestNamedLocations checks which locations filters name.
func TestNamedLocations(t *testing.T) {
	pages := func(targets ...string) (of ir.Directives) {
		for _, target := range targets {
			of.Errors.Pages = append(of.Errors.Pages, ir.ErrorPage{Target: target})
		}
		return of
	}
	within := pages("@c")
	names := ir.NamedLocations([]ir.Filter{
		ir.Forbidden, ir.TryFiles{Target: "@d"}, ir.TryFiles{Target: "/@e"}, ir.TryFiles{Status: 404},
		ir.Program{Directives: pages("@a", "/x", "@b"), Steps: []ir.Step{{If: &ir.If{Directives: &within}}}},
	})
	if want := []string{"@d", "@a", "@b", "@c"}; !slices.Equal(names, want) {
		t.Errorf("the names are %v", names)
	}
}
