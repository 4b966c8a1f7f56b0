package hosts

import (
	"reflect"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// appRoot adds a route that matches exactly "/" before all other routes, if an Ingress in the namespace that owns the
// host has the annotation app-root. If several Ingresses have this annotation, the oldest Ingress wins.
func (m *mergeState) appRoot() {
	host := m.Host.Host
	var chosen *Contribution
	for r := range m.ofOwner(true) {
		switch {
		case r.Root == nil || len(r.Paths[host]) == 0:
		case chosen == nil:
			chosen = r
		case !reflect.DeepEqual(redirectOf(r.Root), redirectOf(chosen.Root)):
			m.otherRoot(r, "the setting has no effect on "+OrEvery(host)+": "+snapshot.Elder(chosen.Object, r.Object)+
				" has a different app-root, which is used instead")
		}
	}
	for r := range m.ofOwner(false) {
		if r.Root != nil && m.serves(r) {
			m.otherRoot(r, "the setting has no effect on "+OrEvery(host)+": "+m.ownerFor(r)+" in another namespace "+
				"owns this host")
		}
	}
	if chosen == nil {
		return
	}
	root := m.withServer(chosen, chosen.Root)
	m.Host.Routes = slices.Insert(m.Host.Routes, 0, &ir.Route{
		Match:   ir.Match{PathMatch: ir.PathMatch{Type: ir.MatchExact, Path: "/"}},
		Filters: append(m.toHTTPS(root), root.Filters...), Backends: ir.To(chosen.Paths[host][0].Backend),
		ErrorPages: root.ErrorPages, Origin: chosen.Ref(), RoutePolicy: root.RoutePolicy,
	})
}

// redirectOf returns the last filter for "/", which is the redirect to app-root. The filters before it decide who gets
// the redirect.
func redirectOf(root *Path) ir.Filter { return root.Filters[len(root.Filters)-1] }

func (m *mergeState) otherRoot(r *Contribution, message string) {
	m.problem(r, report.Problem{
		Severity: report.Warning, Reason: report.HostConflict, Field: report.AnnotationField(report.AppRoot),
		Message: message,
	})
}
