package ingress

import (
	"cmp"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// Class is an IngressClass of ours that has a ConfigMap for parameters.
type Class struct {
	ConfigMap ir.Ref
	// Unread says that the parameters cannot be read. Defaults is closed then.
	Unread bool
	// Defaults are the settings of an Ingress of the class that has no annotations.
	Defaults annotations.Settings
}

const classClosed = "all requests for Ingresses of the class get 503, because the ConfigMap may keep requests out"

// Parameters returns the ConfigMap that the parameters of an IngressClass name, or the problem with them. Without
// parameters there is neither. An error closes the class: what would be in the ConfigMap may keep requests out, so that to go
// without it could let everybody in. Only an object of an API group, which no ConfigMap is, has been there for somebody else
// all the time; ingress-nginx, which reads no parameters, served such a class, and it is served here. own is the namespace
// of the controller's own ConfigMaps: as a ConfigMap always has a namespace, that is where the scope Cluster, which has none,
// looks for it.
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
		problem := parameters("kind", "the parameters are of the kind %s of %s, and have no effect: a ConfigMap, without an apiGroup, would have one",
			p.Kind, group)
		problem.Severity = report.Warning
		return ir.Ref{}, problem
	case p.Kind != kinds.ConfigMap || group != "":
		return ir.Ref{}, parameters("kind", "the parameters are of the kind %s, and may be a ConfigMap, without an apiGroup; %s", p.Kind, classClosed)
	case scope == networkingv1.IngressClassParametersReferenceScopeNamespace:
		if ref.Namespace = ""; p.Namespace != nil {
			ref.Namespace = *p.Namespace
		}
		if ref.Namespace == "" {
			return ir.Ref{}, parameters("namespace", "the scope is Namespace, and there is none: write the namespace of the ConfigMap %s; %s",
				p.Name, classClosed)
		}
	case scope != networkingv1.IngressClassParametersReferenceScopeCluster:
		return ir.Ref{}, parameters("scope", "there is no scope %q: write Namespace, and the namespace of the ConfigMap; %s", scope, classClosed)
	case own == "":
		return ir.Ref{}, parameters("scope", "a ConfigMap has a namespace, and the scope Cluster names none: write scope Namespace and "+
			"the namespace; or give the option configmap, whose namespace counts then; %s", classClosed)
	}
	return ref, nil
}

// NoParameters is the problem of an IngressClass whose parameters do not exist.
func NoParameters(ref ir.Ref) *report.Problem {
	return parameters("name", "there is no ConfigMap %s/%s, or it is in no namespace that is followed; until there is one, "+
		classClosed, ref.Namespace, ref.Name)
}

func parameters(field, message string, args ...any) *report.Problem {
	return &report.Problem{
		Severity: report.Error, Reason: report.InvalidParameters, Field: "spec.parameters." + field, Message: fmt.Sprintf(message, args...),
	}
}

// DefaultClasses are those that the API server could give to an Ingress without one, the one that it takes first: the
// newest.
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

// defaultClass returns the default class that is ours, or nothing. An API server writes it into Ingresses when they are
// made; a folder of files has nobody who does.
func defaultClass(s *snapshot.Snapshot, o Options) string {
	for _, class := range DefaultClasses(s) {
		if class.Spec.Controller == o.ControllerName {
			return class.Name
		}
	}
	return ""
}
