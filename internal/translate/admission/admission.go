// Package admission decides whether an Ingress may be created or changed, for the admission webhook. It refuses what
// ingress-nginx refuses, and turns all other problems into warnings. It only translates the Ingress, against a view of
// the last translation. It does no I/O, and neither renders nor applies the result, so a review cannot run anything.
package admission

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// Answer is the result of a review.
type Answer struct {
	// Refusal is the reason why the change is refused. It is empty if the change is allowed.
	Refusal string
	// Warnings are messages for the author of the Ingress, within the limits of the API server.
	Warnings []string
}

// Review decides about a new version of an Ingress. old is the stored version, or nil if the Ingress is created. Review
// calls stop before each step, and returns nil if stop returns true.
//
// An Ingress of another controller is allowed without warnings. So is an Ingress that is being deleted, and a change of
// neither the spec nor the annotations: refusing these would prevent controllers from removing their finalizers.
func Review(v *translate.View, object, old *networkingv1.Ingress, stop func() bool) *Answer {
	if object.DeletionTimestamp != nil || old != nil && same(object, old) {
		return &Answer{}
	}
	p := v.Preview(created(object), stop)
	if p == nil {
		return nil
	}
	r := &review{View: v, Preview: p}
	if p.Ours {
		r.paths(object)
		r.annotations()
	} else {
		r.Problems = slices.DeleteFunc(r.Problems, ofOthers)
	}
	return r.answer()
}

// ofOthers reports whether to omit a problem of an Ingress that this controller does not serve. Only a class that is
// missing is a mistake. Any other class may belong to another controller, whose webhook then reviews the Ingress.
func ofOthers(p report.Problem) bool {
	return p.Reason != report.IngressClassNotFound && p.Reason != report.MissingClass
}

func same(a, b *networkingv1.Ingress) bool {
	return maps.Equal(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// created returns an Ingress with a creationTimestamp. The API server sets it before it asks the webhook. Without it,
// the Ingress would be older than all others, and would take over their paths.
func created(object *networkingv1.Ingress) *networkingv1.Ingress {
	if !object.CreationTimestamp.IsZero() {
		return object
	}
	young := *object
	young.CreationTimestamp = metav1.NewTime(time.Unix(math.MaxInt32, 0))
	return &young
}

// review is the state of one call to Review.
type review struct {
	*translate.View
	*translate.Preview
	refusals []report.Problem
}

func (r *review) refuse(field, message string, args ...any) {
	r.refusals = append(r.refusals, report.Problem{Field: field, Message: fmt.Sprintf(message, args...)})
}

// paths refuses paths of other Ingresses, paths that strict-validate-path-type forbids, and rules for every host if
// disable_catch_all is set.
func (r *review) paths(object *networkingv1.Ingress) {
	for _, t := range r.Taken {
		effect := ""
		if t.Wins {
			effect = ", and this Ingress would take its requests"
		}
		r.refuse(t.Field, "%s has the path %s of %s already%s: choose another path or host, or set the annotation "+
			"%s to true if this Ingress is a canary", t.By, t.Path, t.HostText(), effect, annotations.Key("canary"))
	}
	r.move(func(p report.Problem) bool { return p.Reason == report.CatchAllRefused })
	if r.AnyPathType {
		return
	}
	for p := range ingress.StrictPaths(object) {
		r.refuse(p.Field, "the path %q contains characters other than letters, digits and -._/, which the pathType %s "+
			"does not allow: write the pathType ImplementationSpecific, or ask the administrator to set "+
			"strict-validate-path-type in the ConfigMap to false", p.Path, p.Type)
	}
}

// annotations refuses annotations whose value cannot be read, and annotations that the administrator does not allow.
// Values that only k8singress does not support are served as far as possible, so they cause warnings.
func (r *review) annotations() {
	found := make(map[report.Problem]bool, len(r.Annotations))
	for _, p := range r.Annotations {
		found[p] = true
	}
	r.move(func(p report.Problem) bool {
		if !found[p] {
			return false
		}
		switch p.Reason {
		case report.InvalidAnnotation:
			return p.Severity == report.Error
		case report.AnnotationNotAllowed:
			return p.Severity == report.Error || !r.IgnoresSnippets
		default:
			return false
		}
	})
}

// move turns the problems for which is returns true into refusals.
func (r *review) move(is func(report.Problem) bool) {
	r.Problems = slices.DeleteFunc(slices.Clone(r.Problems), func(p report.Problem) bool {
		if is(p) {
			r.refusals = append(r.refusals, p)
			return true
		}
		return false
	})
}
