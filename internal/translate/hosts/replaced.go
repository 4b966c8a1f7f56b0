package hosts

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// reportReplaced adds warnings if a location of the host's server-snippet has the path of an Ingress. Then the location
// gets the requests, without the settings of the Ingress. An Ingress may replace its own path, unless the path has
// access control.
func (m *mergeState) reportReplaced(location *Path) {
	same := map[ir.MatchType]ir.MatchType{
		ir.LocationPrefix: ir.MatchPrefix, ir.LocationPrefixOnly: ir.MatchPrefix, ir.LocationExact: ir.MatchExact,
	}
	match := ir.PathMatch{Type: same[location.Match.Type], Path: location.Match.Path}
	if match.Type == ir.MatchPrefix {
		match.Path = strings.TrimSuffix(match.Path, "/")
	}
	replaced, found := m.taken[match]
	r, by := m.server, replaced.by
	if !found || m.regex[by.namespace()] || !m.Owner.Is(by.namespace()) {
		return
	}
	with := ""
	if ir.Strictest(replaced.path.Filters) != ir.NoRequests {
		with = ", with its access control"
	} else if by == r {
		return
	}
	of := "this Ingress"
	if by != r {
		of = by.Ref().String()
		m.problem(by, report.Problem{
			Severity: report.Warning, Reason: report.PathConflict, Field: replaced.path.Field, Message: fmt.Sprintf(
				"the location in line %d of the server-snippet of %s gets the requests for this path on %s, and "+
					"replaces the settings of this Ingress%s", location.Line, r.Ref(), OrEvery(m.Host.Host), with),
		})
	}
	m.problem(r, report.Problem{
		Severity: report.Warning, Reason: report.PathConflict, Field: report.AnnotationField(report.ServerSnippet),
		Message: fmt.Sprintf("the location in line %d replaces the path %s of %s on %s%s", location.Line,
			replaced.path.Match.Path, of, OrEvery(m.Host.Host), with),
	})
}
