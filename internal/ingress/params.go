package ingress

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

const (
	paramsClosed = "all requests for this Ingress get 503"
	// mostParamBytes bounds what is copied into the routes, and sent with each request.
	mostParamBytes = 64 << 10
)

// readParams reads the ConfigMap with parameters of FastCGI. Without it, the application would run with other settings than
// its owner means, among them those that keep it from running whatever it is told to: so the Ingress is closed.
func (r *reading) readParams() {
	name := r.annotations.ParamsConfigMap
	if name == "" || r.annotations.Forwarding.Protocol != ir.FastCGI {
		return
	}
	ref := ir.Ref{Kind: kinds.ConfigMap, Namespace: r.Object.Namespace, Name: name}
	if namespace, rest, has := strings.Cut(name, "/"); has {
		if namespace != ref.Namespace {
			r.refuseParams(report.InvalidAnnotation, "the ConfigMap %s is in another namespace than the Ingress: "+paramsClosed+
				". Copy it to the namespace %s", name, ref.Namespace)
			return
		}
		ref.Name = rest
	}
	r.depend(ref)
	object, ok := snapshot.Of[*corev1.ConfigMap](r.snapshot).Get(ref.Namespace, ref.Name)
	if !ok {
		r.refuseParams(report.ConfigMapNotFound, "there is no ConfigMap %s/%s: "+paramsClosed+" until there is one", ref.Namespace, ref.Name)
		return
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(object.Data)) {
		size += len(key) + len(object.Data[key])
		if _, err := nginx.ParseTemplate(object.Data[key], nginx.FastCGIVariables...); err != nil {
			r.refuseParams(report.InvalidAnnotation, "the value of %s in the ConfigMap %s/%s: %v; "+paramsClosed, key, ref.Namespace, ref.Name, err)
		}
	}
	if size > mostParamBytes {
		r.refuseParams(report.InvalidAnnotation, "the ConfigMap %s/%s has %d bytes of parameters, and %d are the most: "+paramsClosed,
			ref.Namespace, ref.Name, size, mostParamBytes)
	}
	if !r.annotations.Closed {
		r.params = object.Data
	}
}

func (r *reading) refuseParams(reason report.Reason, message string, args ...any) {
	r.annotations.Closed = true
	r.problem(report.Error, reason, report.AnnotationField(annotations.Prefix+"fastcgi-params-configmap"), message, args...)
}
