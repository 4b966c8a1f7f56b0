package ingress

import (
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
)

// clientAuth reads what the annotations say of the certificates of clients. What is in the Secret is not looked at here.
func (r *reading) clientAuth() {
	if !r.annotations.AsksClients() {
		return
	}
	auth := r.annotations.ClientAuth
	auth.Origin = r.origin()
	if !auth.Secret.IsZero() && auth.Secret.Namespace != r.Object.Namespace && !r.annotations.CrossNamespace {
		r.problem(report.Error, report.InvalidAnnotation, report.AnnotationField(report.ClientAuthSecret),
			"the Secret %s is in another namespace: every request for the hosts of this Ingress gets 403. Copy it to %s, or set "+
				"allow-cross-namespace-resources in the ConfigMap", auth.Secret, r.Object.Namespace)
		auth.Secret, auth.Closed = ir.Name{}, true
	}
	if !auth.Secret.IsZero() {
		r.depend(auth.Secret.Of(kinds.Secret))
	}
	r.ClientAuth = &auth
}
