package ingress

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/nearest"
	"github.com/k8singress/k8singress/internal/report"
)

const (
	// classAnnotation came before spec.ingressClassName.
	classAnnotation = "kubernetes.io/ingress.class"

	annotationField = "metadata.annotations[" + classAnnotation + "]"
	classField      = "spec.ingressClassName"
)

// ours says whether the Ingress is for this controller. The annotation beats the field, as the documentation of the field
// wants it. ingress-nginx looks at the field first; few Ingresses have both, since the API server lets nobody create one.
func (r *reading) ours(o Options) bool {
	// Any class may come to be ours, or the default one.
	r.depend(ir.Ref{Kind: kinds.IngressClass})
	if class, ok := r.Object.Annotations[classAnnotation]; ok {
		return r.annotated(o, class)
	}
	if name := r.Object.Spec.IngressClassName; name != nil && *name != "" {
		return r.named(o, *name)
	}
	if o.WatchWithoutClass || r.defaultClass(o) {
		return true
	}
	r.notServed(o, report.NoClass, classField, "it names no class, and no default class is of this controller: write %s",
		strings.Join(r.classes(o, o.ControllerName), " or "))
	return false
}

func (r *reading) annotated(o Options, class string) bool {
	switch {
	case class == o.ClassName || class == "" && o.WatchWithoutClass:
		return true
	case class == "":
		r.notServed(o, report.NoClass, annotationField, "the annotation names no class: write %s", o.ClassName)
	default:
		r.notServed(o, report.OtherClass, annotationField, "class %q is another controller's, and this one serves class %s",
			class, o.ClassName)
	}
	return false
}

func (r *reading) named(o Options, name string) bool {
	if object, ok := r.snapshot.Classes.Get("", name); ok {
		if object.Spec.Controller == o.ControllerName {
			return true
		}
		r.notServed(o, report.OtherClass, classField, "the IngressClass %s is of the controller %s, and this one is %s",
			name, object.Spec.Controller, o.ControllerName)
		return false
	}
	if o.Folder && name == o.ClassName {
		return true
	}
	r.problem(report.Warning, report.UnknownClass, classField,
		"there is no IngressClass %s, so no controller serves this Ingress: %s, with spec.controller %s for this one",
		name, r.instead(o, name), o.ControllerName)
	return false
}

// notServed says why an Ingress is not ours, where it is certain that its owner wants to know: in a cluster, another
// controller may well serve it.
func (r *reading) notServed(o Options, reason report.Reason, field, message string, args ...any) {
	if o.Folder {
		r.problem(report.Info, reason, field, "not served: "+message, args...)
	}
}

// instead says what to do about a class that does not exist.
func (r *reading) instead(o Options, name string) string {
	const create, most = "create it", 5
	all := r.classes(o, "")
	if near := nearest.Of(name, all); near != "" {
		return "did you mean " + near + "? Otherwise " + create
	}
	switch more := len(all) - most; {
	case len(all) == 0:
		return create
	case more > 0:
		return fmt.Sprintf("write %s or one of %d more, or %s", strings.Join(all[:most], ", "), more, create)
	}
	return "write " + strings.Join(all, " or ") + ", or " + create
}

// classes are the names of the classes there are, in alphabetical order: those of one controller, or without one, all.
func (r *reading) classes(o Options, controller string) []string {
	var names []string
	for class := range r.snapshot.Classes.All() {
		if controller == "" || class.Spec.Controller == controller {
			names = append(names, class.Name)
		}
	}
	if _, exists := r.snapshot.Classes.Get("", o.ClassName); o.Folder && !exists {
		names = append(names, o.ClassName)
		slices.Sort(names)
	}
	return names
}

// defaultClass says whether a class of ours is the default one of the cluster. An API server writes it into Ingresses
// when they are made; a folder of files has nobody who does.
func (r *reading) defaultClass(o Options) bool {
	for class := range r.snapshot.Classes.All() {
		if class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" && class.Spec.Controller == o.ControllerName {
			return true
		}
	}
	return false
}
