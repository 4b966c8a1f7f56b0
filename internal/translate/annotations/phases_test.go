package annotations

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// nameFilters replaces the filters of each phase with one filter that has the name of the phase, until the test ends.
func nameFilters(t *testing.T) {
	t.Helper()
	before := phases
	t.Cleanup(func() { phases = before })
	phases = slices.Clone(phases)
	for i := range phases {
		if p := &phases[i]; p.filters != nil {
			name := p.Name
			p.filters = func(*Settings, string) []ir.Filter { return []ir.Filter{ir.HandlerChain{Name: name}} }
		}
	}
}

// TestFiltersOfRoot checks that requests for "/" pass the filters of all phases before app-root, in the same order as
// requests for other paths, and then get the redirect.
func TestFiltersOfRoot(t *testing.T) {
	nameFilters(t)
	var want []ir.Filter
	for _, p := range phases {
		if p.Name == "app-root" {
			want = append(want, ir.AppRoot{Path: "/app"})
			break
		}
		if p.filters != nil {
			want = append(want, ir.HandlerChain{Name: p.Name})
		}
	}
	s := Settings{AppRoot: "/app"}
	if diff := cmp.Diff(want, s.FiltersOfRoot()); diff != "" {
		t.Errorf("filters for / (-want +got):\n%s", diff)
	}
	if n := len(want) - 1; n == 0 || !slices.Equal(want[:n], s.Filters("/other")[:n]) {
		t.Errorf("filters for another path: %v, want %v first", s.Filters("/other"), want[:n])
	}
}
