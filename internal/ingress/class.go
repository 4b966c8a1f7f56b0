package ingress

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
)

// classAnnotation came before spec.ingressClassName.
const classAnnotation = "kubernetes.io/ingress.class"

// ours says whether the Ingress is for this controller. The annotation beats the field, as the documentation of the field
// wants it. ingress-nginx looks at the field first; few Ingresses have both, since the API server lets nobody create one.
func (r *reading) ours(o Options) bool {
	// Any class may come to be ours, or the default one.
	r.depend(ir.Ref{Kind: kinds.IngressClass})
	class, annotated := r.Object.Annotations[classAnnotation]
	name := r.Object.Spec.IngressClassName
	switch {
	case annotated && class == "":
		return o.WatchWithoutClass
	case annotated:
		return class == o.ClassName
	case name == nil || *name == "":
		return o.WatchWithoutClass || r.defaultClass(o)
	}
	object, ok := r.snapshot.Classes.Get("", *name)
	if ok {
		return object.Spec.Controller == o.ControllerName
	}
	if o.AssumeClass && *name == o.ClassName {
		return true
	}
	r.problem(report.Warning, report.UnknownClass, "spec.ingressClassName",
		"there is no IngressClass %s, so no controller serves this Ingress: create it, with spec.controller %s for this one",
		*name, o.ControllerName)
	return false
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
