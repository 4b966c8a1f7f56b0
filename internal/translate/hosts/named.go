package hosts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// namedLocations adds a warning to each object whose snippets pass requests to a location that does not exist.
func (m *mergeState) namedLocations() {
	own, shared := m.locationNames()
	for r := range m.contributions {
		if !m.serves(r) {
			continue
		}
		names := shared
		if m.Owner.Is(r.namespace()) {
			names = own
		}
		if r == m.server {
			used := ir.NamedLocations(r.Server.Filters)
			for _, p := range r.Server.Locations {
				used = append(used, ir.NamedLocations(p.Filters)...)
			}
			m.reportMissing(r, report.ServerSnippet, used, names)
		}
		var used []string
		for _, p := range r.Paths[m.Host.Host] {
			used = append(used, ir.NamedLocations(p.Filters)...)
		}
		m.reportMissing(r, report.ConfigurationSnippet, used, names)
	}
}

// locationNames returns the names of the locations that paths of the namespace that owns the host may name, and the
// names for all paths.
func (m *mergeState) locationNames() (own, shared []string) {
	r := m.server
	if r == nil {
		r = m.anyServer()
	}
	if r == nil {
		return nil, nil
	}
	for _, p := range r.Server.Locations {
		if p.Match.Type != ir.LocationNamed {
			continue
		}
		own = append(own, p.Match.Path)
		if p.Everywhere {
			shared = append(shared, p.Match.Path)
		}
	}
	return own, shared
}

// reportMissing adds a warning to r for each of the used names that is not in names.
func (m *mergeState) reportMissing(r *Contribution, annotation string, used, names []string) {
	slices.Sort(used)
	for _, name := range slices.Compact(used) {
		if slices.Contains(names, name) {
			continue
		}
		there := "this namespace has no locations with names"
		if len(names) > 0 {
			there = "its locations with names are " + strings.Join(names, ", ")
		}
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.InvalidPath, Field: report.AnnotationField(annotation),
			Message: fmt.Sprintf("the server-snippet of %s has no location %s, so requests that error_page or "+
				"try_files pass to it get 500; %s", OrEvery(m.Host.Host), name, there),
		})
	}
}
