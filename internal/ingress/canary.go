package ingress

import (
	"strings"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// canarySettings reads the annotations that a canary has itself. Many a canary is a copy of its main Ingress with all of the
// annotations, so the others are no mistake.
func (r *reading) canarySettings(defaults annotations.Settings) (*annotations.Settings, []report.Problem) {
	counting, void := annotations.OfCanary(r.Object.Annotations)
	if len(void) > 0 {
		r.problem(report.Info, report.InvalidAnnotation, "metadata.annotations",
			"a canary has these annotations from its main Ingress, and its own have no effect: %s", strings.Join(void, ", "))
	}
	return annotations.Parse(defaults, counting)
}

// closedCanary is what stands in for a canary that cannot be read. It must not answer as if it were a main Ingress.
func (r *reading) closedCanary() *ir.Canary {
	if r.annotations.Canary == nil {
		return nil
	}
	return &ir.Canary{Closed: true}
}
