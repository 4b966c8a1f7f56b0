package ingress

import (
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
)

const backendTLSField = "metadata.annotations[" + annotations.Prefix + "proxy-ssl-secret]"

// backendTLS looks at whose Secret the annotations name for TLS with endpoints. What is in it is not looked at here.
func (r *reading) backendTLS() {
	t := r.annotations.Forwarding.TLS
	if t == nil {
		r.Unsecured = r.annotations.UsesTLS() && !r.annotations.Closed && !r.annotations.BackendTLSByPath
		return
	}
	namespace, name, _ := strings.Cut(t.Secret, "/")
	if namespace == r.Object.Namespace || r.annotations.CrossNamespace {
		r.depend(ir.Ref{Kind: kinds.Secret, Namespace: namespace, Name: name})
		return
	}
	r.problem(report.Error, report.InvalidAnnotation, backendTLSField, "the Secret %s is in another namespace: all requests for this Ingress "+
		"get 503. Copy it to %s, or set allow-cross-namespace-resources in the ConfigMap", t.Secret, r.Object.Namespace)
	// Nothing of it may be used by somebody who could not read it.
	r.annotations.Forwarding.TLS, r.annotations.Closed, r.LoadBalancing.HealthCheck = nil, true, nil
}

// unsecured tells the Ingresses of a host that speak TLS with their endpoints, and say nothing of it, that another one does: with
// ingress-nginx that would hold for them, too. Here it does not, because nobody may show the certificate of another one.
func (m *merging) unsecured(results []*Result) {
	// All paths of an Ingress have the same.
	i := slices.IndexFunc(results, func(r *Result) bool {
		paths := r.Paths[m.Host.Host]
		return len(paths) > 0 && paths[0].Proxy.TLS != nil
	})
	if i < 0 {
		return
	}
	for _, r := range results {
		if r.Unsecured && len(r.Paths[m.Host.Host]) > 0 {
			m.problem(r, report.Problem{
				Severity: report.Warning, Reason: report.HostConflict, Field: "metadata.annotations", Message: fmt.Sprintf(
					"%s has %sproxy-ssl-secret for the same host, which holds for its own paths only: the endpoints of this Ingress are not "+
						"verified, and are shown no certificate. To have the same here, set it here too; to have this Event no more, set "+
						"proxy-ssl-location-only in the ConfigMap to true", refOf(results[i]), annotations.Prefix),
			})
		}
	}
}
