package ingress

import (
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
)

// backendTLS looks at whose Secret the annotations name for TLS with endpoints. What is in it is not looked at here.
func (r *reading) backendTLS() {
	t := r.annotations.Forwarding.TLS
	if t == nil {
		r.Unsecured = r.annotations.UsesTLS() && !r.annotations.Closed && !r.annotations.BackendTLSByPath
		return
	}
	if t.Secret.Namespace == r.Object.Namespace || r.annotations.CrossNamespace {
		r.depend(t.Secret.Of(kinds.Secret))
		return
	}
	r.problem(report.Error, report.InvalidAnnotation, report.AnnotationField(report.BackendTLSSecret),
		"the Secret %s is in another namespace: all requests for this Ingress "+
			"get 503. Copy it to %s, or set allow-cross-namespace-resources in the ConfigMap", t.Secret, r.Object.Namespace)
	// Nothing of it may be used by somebody who could not read it.
	r.annotations.Forwarding.TLS, r.annotations.Closed, r.LoadBalancing.HealthCheck = nil, true, nil
}
