package ingress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/model/suggest"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

const (
	// classAnnotation is the annotation that selected the class of an Ingress before spec.ingressClassName was
	// introduced.
	classAnnotation = "kubernetes.io/ingress.class"

	classField = "spec.ingressClassName"
)

// The method selected reports whether the namespace of the Ingress matches the administrator's namespace selector.
func (r *reading) selected() bool {
	o, namespace := r.options, r.Object.Namespace
	if o.Namespaces == nil {
		return true
	}
	r.depend(ir.Ref{Kind: kinds.Namespace, Name: namespace})
	// The API server sets this label on each namespace. In a folder of manifests, the label or the whole Namespace
	// object may be missing, so add the label here.
	all := labels.Set{corev1.LabelMetadataName: namespace}
	if object, ok := snapshot.Of[*corev1.Namespace](r.snapshot).Get("", namespace); ok {
		all = labels.Merge(all, object.Labels)
	} else if !o.Folder {
		return false
	}
	if !o.Namespaces.Matches(all) {
		r.notServed(o, report.NamespaceNotSelected, "metadata.namespace",
			"the labels of the namespace %s do not match namespace_selector %s",
			namespace, o.Namespaces)
		return false
	}
	return true
}

// The method ours reports whether this controller has to serve the Ingress. If the Ingress has both
// spec.ingressClassName and the annotation kubernetes.io/ingress.class, the field takes precedence. The Kubernetes
// documentation says the opposite, but ingress-nginx also prefers the field, and this controller must serve the same
// Ingresses as ingress-nginx. Such an Ingress gets a warning. Only old Ingresses can have both, because the API server
// rejects new ones.
func (r *reading) ours(o Options) bool {
	// Any IngressClass can decide whether the Ingress is served, so the Ingress depends on all IngressClasses.
	r.depend(ir.Ref{Kind: kinds.IngressClass})
	annotation, annotated := r.Object.Annotations[classAnnotation]
	if name := r.Object.Spec.IngressClassName; name != nil && *name != "" {
		ours := r.named(o, *name)
		if annotated && annotation != *name && ours != annotatedOurs(o, annotation) {
			r.contradiction(*name, annotation, ours)
		}
		return ours
	}
	if annotated {
		return r.annotated(o, annotation)
	}
	if name := defaultClass(r.snapshot, o); name != "" {
		r.Class = name
		return true
	}
	if o.WatchWithoutClass {
		return true
	}
	r.notServed(o, report.MissingClass, classField,
		"the Ingress names no class, and this controller has no default class: write %s",
		strings.Join(r.classes(o, o.ControllerName), " or "))
	return false
}

func (r *reading) contradiction(field, annotation string, ours bool) {
	outcome := "so this controller does not serve the Ingress, although the annotation names its class"
	if ours {
		outcome = "so this controller serves the Ingress, although the annotation names another class"
	}
	r.problem(report.Warning, report.ClassConflict, report.AnnotationField(classAnnotation),
		"spec.ingressClassName is %q and the annotation is %q. The field takes precedence, %s: remove one of them",
		field, annotation, outcome)
}

func annotatedOurs(o Options, class string) bool {
	return class == o.ClassName || class == "" && o.WatchWithoutClass
}

func (r *reading) annotated(o Options, class string) bool {
	switch {
	case annotatedOurs(o, class):
		r.Class = class
		return true
	case class == "":
		r.notServed(o, report.MissingClass, report.AnnotationField(classAnnotation),
			"the annotation is empty: write %s", o.ClassName)
	default:
		r.notServed(o, report.OtherClass, report.AnnotationField(classAnnotation),
			"the class %q belongs to another controller, and this controller serves the class %s",
			class, o.ClassName)
	}
	return false
}

// The method named reports whether a class belongs to this controller. This is the case if its IngressClass has the
// name of this controller in spec.controller. A class with the name in the option ClassName also belongs to this
// controller if ClassByName is set, if the controller may not read IngressClasses, or if a folder of manifests contains
// no such IngressClass.
func (r *reading) named(o Options, name string) bool {
	object, ok := snapshot.Of[*networkingv1.IngressClass](r.snapshot).Get("", name)
	unread := !ok && r.snapshot.Denied(ir.Ref{Kind: kinds.IngressClass})
	if ok && object.Spec.Controller == o.ControllerName || name == o.ClassName && (o.ClassByName || unread) {
		r.Class = name
		return true
	}
	if ok {
		r.notServed(o, report.OtherClass, classField,
			"the IngressClass %s belongs to the controller %s, and this controller is %s",
			name, object.Spec.Controller, o.ControllerName)
		return false
	}
	if o.Folder && name == o.ClassName {
		return true
	}
	if unread {
		// The class may exist and belong to another controller, so do not report that it is missing.
		return false
	}
	r.problem(report.Warning, report.IngressClassNotFound, classField,
		"the IngressClass %s does not exist, so no controller serves this Ingress: %s, with spec.controller %s for "+
			"this controller",
		name, r.instead(o, name), o.ControllerName)
	return false
}

// notServed reports why this controller does not serve an Ingress, if the Ingress comes from a folder of manifests. In
// a cluster it reports nothing, because another controller may serve the Ingress.
func (r *reading) notServed(o Options, reason report.Reason, field, message string, args ...any) {
	if o.Folder {
		r.problem(report.Info, reason, field, "not served: "+message, args...)
	}
}

// This method returns the advice in the message for an Ingress whose class does not exist: use another class, or create
// the class.
func (r *reading) instead(o Options, name string) string {
	const create, most = "create it", 5
	all := r.classes(o, "")
	if near := suggest.Of(name, all); near != "" {
		return "did you mean " + near + "? Otherwise " + create
	}
	switch more := len(all) - most; {
	case len(all) == 0:
		return create
	case more > 0:
		return fmt.Sprintf("write %s or one of %d others, or %s", strings.Join(all[:most], ", "), more, create)
	}
	return "write " + strings.Join(all, " or ") + ", or " + create
}

// classes returns the names of all IngressClasses of a controller in alphabetical order. If controller is empty, it
// returns the names of all IngressClasses.
func (r *reading) classes(o Options, controller string) []string {
	var names []string
	for class := range snapshot.Of[*networkingv1.IngressClass](r.snapshot).All() {
		if controller == "" || class.Spec.Controller == controller {
			names = append(names, class.Name)
		}
	}
	if _, exists := snapshot.Of[*networkingv1.IngressClass](r.snapshot).Get("", o.ClassName); o.Folder && !exists {
		names = append(names, o.ClassName)
		slices.Sort(names)
	}
	return names
}

// Class describes an IngressClass of this controller that has parameters.
type Class struct {
	ConfigMap ir.Ref
	// Unread is true if the parameters of the class cannot be read. All requests for Ingresses of the class then get
	// 503.
	Unread bool
	// Defaults are the settings that apply to an Ingress of the class without annotations.
	Defaults annotations.Settings
}

const classClosed = "all requests for Ingresses of the class get 503, because the ConfigMap may restrict access"

// Parameters returns the ConfigMap to which the parameters of an IngressClass refer, or a problem if the parameters are
// invalid. If the class has no parameters, the ConfigMap is the zero value and the problem is nil.
//
// If the problem is an Error, all requests for Ingresses of the class must get 503, because the ConfigMap may restrict
// access, and ignoring it could allow every client. If the parameters refer to an object of an API group, such as a
// custom resource, the problem is only a Warning: such parameters were written for another controller. ingress-nginx
// ignores all parameters, so it also serves Ingresses of such a class.
//
// own is the namespace of the controller's ConfigMap. Parameters with the scope Cluster do not contain a namespace, so
// their ConfigMap is read from the namespace own.
func Parameters(class *networkingv1.IngressClass, own string) (ir.Ref, *report.Problem) {
	p := class.Spec.Parameters
	if p == nil {
		return ir.Ref{}, nil
	}
	ref := ir.Ref{Kind: kinds.ConfigMap, Namespace: own, Name: p.Name}
	scope := networkingv1.IngressClassParametersReferenceScopeCluster
	if p.Scope != nil {
		scope = *p.Scope
	}
	group := ""
	if p.APIGroup != nil {
		group = *p.APIGroup
	}
	switch {
	case p.Kind != kinds.ConfigMap && group != "":
		problem := parameters("kind",
			"the parameters have the kind %s of the API group %s, and have no effect: only a ConfigMap, without an "+
				"apiGroup, is supported",
			p.Kind, group)
		problem.Severity = report.Warning
		return ir.Ref{}, problem
	case p.Kind != kinds.ConfigMap || group != "":
		return ir.Ref{}, parameters("kind",
			"the parameters have the kind %s, and only a ConfigMap, without an apiGroup, is supported; %s",
			p.Kind, classClosed)
	case scope == networkingv1.IngressClassParametersReferenceScopeNamespace:
		if ref.Namespace = ""; p.Namespace != nil {
			ref.Namespace = *p.Namespace
		}
		if ref.Namespace == "" {
			return ir.Ref{}, parameters("namespace",
				"the scope is Namespace, and the namespace is missing: add the namespace of the ConfigMap %s; %s",
				p.Name, classClosed)
		}
	case scope != networkingv1.IngressClassParametersReferenceScopeCluster:
		return ir.Ref{}, parameters("scope",
			"the scope %q is invalid: write the scope Namespace, and the namespace of the ConfigMap; %s",
			scope, classClosed)
	case own == "":
		return ir.Ref{}, parameters("scope",
			"the scope Cluster has no namespace, which a ConfigMap requires: write the scope Namespace and the "+
				"namespace, or set the option configmap, so that the namespace of its ConfigMap is used; %s",
			classClosed)
	}
	return ref, nil
}

// NoParameters returns the problem to report for an IngressClass whose parameters refer to a ConfigMap that does not
// exist.
func NoParameters(ref ir.Ref) *report.Problem {
	return parameters("name",
		"the ConfigMap %s/%s does not exist, or its namespace is not watched; until it exists, "+classClosed,
		ref.Namespace, ref.Name)
}

func parameters(field, message string, args ...any) *report.Problem {
	return &report.Problem{
		Severity: report.Error, Reason: report.InvalidParameters, Field: "spec.parameters." + field,
		Message: fmt.Sprintf(message, args...),
	}
}

// DefaultClasses returns the IngressClasses that are marked as default, the newest first. The API server assigns the
// first one to new Ingresses without a class.
func DefaultClasses(s *snapshot.Snapshot) []*networkingv1.IngressClass {
	var all []*networkingv1.IngressClass
	for class := range snapshot.Of[*networkingv1.IngressClass](s).All() {
		if class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
			all = append(all, class)
		}
	}
	slices.SortStableFunc(all, func(a, b *networkingv1.IngressClass) int {
		return cmp.Or(b.CreationTimestamp.Time.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// defaultClass returns the name of the default IngressClass of this controller, or "" if it does not exist. It is used
// for Ingresses without a class in a folder of manifests; in a cluster, the API server assigns the default class to new
// Ingresses.
func defaultClass(s *snapshot.Snapshot, o Options) string {
	for _, class := range DefaultClasses(s) {
		if class.Spec.Controller == o.ControllerName {
			return class.Name
		}
	}
	return ""
}
