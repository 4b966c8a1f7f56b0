package ingress

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
)

const clientAuthField = "metadata.annotations[" + annotations.Prefix + "auth-tls-secret]"

// clientAuth reads what the annotations say of the certificates of clients. What is in the Secret is not looked at here.
func (r *reading) clientAuth() {
	if !r.annotations.AsksClients() {
		return
	}
	auth := r.annotations.ClientAuth
	auth.Origin = r.origin()
	if auth.SecretName != "" && auth.SecretNamespace != r.Object.Namespace && !r.annotations.CrossNamespace {
		r.problem(report.Error, report.InvalidAnnotation, clientAuthField,
			"the Secret %s/%s is in another namespace: every request for the hosts of this Ingress gets 403. Copy it to %s, or set "+
				"allow-cross-namespace-resources in the ConfigMap", auth.SecretNamespace, auth.SecretName, r.Object.Namespace)
		auth.SecretNamespace, auth.SecretName, auth.Closed = "", "", true
	}
	if auth.SecretName != "" {
		r.depend(ir.Ref{Kind: kinds.Secret, Namespace: auth.SecretNamespace, Name: auth.SecretName})
	}
	r.ClientAuth = &auth
}

// clientAuth is that of the oldest Ingress which has one, for all of the host. Within a namespace the owners of both are
// taken for the same people, as with ingress-nginx; an Ingress of another one is closed rather than opened to clients that it
// did not ask for.
func (m *merging) clientAuth(r *Result) {
	switch {
	case r.ClientAuth == nil:
	case m.Host.ClientAuth == nil:
		m.Host.ClientAuth = r.ClientAuth
	case sameClientAuth(m.Host.ClientAuth, r.ClientAuth):
	case m.Host.ClientAuth.Origin.Namespace != r.Object.Namespace:
		if m.outvoted == nil {
			m.outvoted = map[*Result]bool{}
		}
		m.outvoted[r] = true
		m.problem(r, report.Problem{
			Severity: report.Error, Reason: report.HostConflict, Field: clientAuthField,
			Message: fmt.Sprintf("%s asks the clients of %s for certificates in another way, which counts for the whole host: "+
				"the paths of this Ingress get 403 there. Ask for the same, or use another host", m.elder(m.Host.ClientAuth.Origin, r),
				orEvery(m.Host.Host)),
		})
	default:
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.HostConflict, Field: clientAuthField,
			Message: fmt.Sprintf("%s asks the clients of %s for certificates in another way, which counts for the whole host",
				m.elder(m.Host.ClientAuth.Origin, r), orEvery(m.Host.Host)),
		})
	}
}

func sameClientAuth(a, b *ir.ClientAuth) bool {
	x, y := *a, *b
	x.Origin, y.Origin = ir.Origin{}, ir.Origin{}
	return x == y
}

// addFallback adds the backend of an Ingress without rules. If that asks for certificates, and the host does not ask for the
// same, nobody is let in there: who the clients are is not known.
func (m *merging) addFallback(r *Result) {
	if m.Host.Host == "" {
		m.clientAuth(r)
	}
	p := r.Fallback
	if r.ClientAuth != nil && (m.Host.ClientAuth == nil || !sameClientAuth(m.Host.ClientAuth, r.ClientAuth)) {
		closed := *p
		closed.Filters = slices.Concat([]ir.Filter{ir.DirectResponse{Status: 403}}, p.Filters)
		p = &closed
	}
	m.add(r, p)
}
