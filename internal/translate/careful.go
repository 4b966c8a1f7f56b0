package translate

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/ingress"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/report"
)

// balancing is balance.
type balancing func(found *ir.Backend, users []*ingress.Result) *balanced

// try returns what balancing panics with.
func (b balancing) try(found *ir.Backend, users []*ingress.Result) (whole *balanced, fault *panics.Panic) {
	fault = panics.Try(func() { whole = b(found, users) })
	return whole, fault
}

// carefully makes a panic a verdict on the Ingresses with which it comes, from the oldest on. The others are asked how the
// endpoints are to be chosen; if there is no answer even so, the backend is as it is without annotations.
func carefully(balance balancing, found *ir.Backend, users []*ingress.Result) *balanced {
	whole, fault := balance.try(found, users)
	if fault == nil {
		return whole
	}
	faults := map[*ingress.Result]*panics.Panic{}
	var well []*ingress.Result
	for _, r := range users {
		if _, fault := balance.try(found, append(slices.Clip(well), r)); fault != nil {
			faults[r] = fault
		} else {
			well = append(well, r)
		}
	}
	if whole, fault = balance.try(found, well); fault != nil {
		whole = &balanced{backend: found}
	}
	for r, fault := range faults {
		whole.quarantine(r, fault)
	}
	return whole
}

func (b *balanced) quarantine(r *ingress.Result, fault *panics.Panic) {
	if b.problems == nil {
		b.problems = map[ir.Ref][]report.Problem{}
	}
	ref := refOf(r.Object)
	b.problems[ref] = append(b.problems[ref], report.Problem{
		Severity: report.Error, Reason: report.Quarantined, Field: "metadata.annotations",
		Message: fmt.Sprintf("what this Ingress says of load balancing has no effect on the backend %s, because reading it fails: %v",
			b.backend.ID, fault),
	})
}
