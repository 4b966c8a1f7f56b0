package hosts

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// clientAuth is that of the oldest Ingress which has one, for all of the host. Within a namespace the owners of both are
// taken for the same people, as with ingress-nginx; an Ingress of another one is closed rather than opened to clients that it
// did not ask for.
func (m *merging) clientAuth(r *Contribution) {
	switch {
	case r.ClientAuth == nil:
	case m.Host.ClientAuth == nil:
		m.Host.ClientAuth = r.ClientAuth
	case sameClientAuth(m.Host.ClientAuth, r.ClientAuth):
	case m.Host.ClientAuth.Origin.Namespace != r.Object.GetNamespace():
		if m.conflicting == nil {
			m.conflicting = map[*Contribution]bool{}
		}
		m.conflicting[r] = true
		m.problem(r, report.Problem{
			Severity: report.Error, Reason: report.HostConflict, Field: report.AnnotationField(report.ClientAuthSecret),
			Message: fmt.Sprintf("%s asks the clients of %s for certificates in another way, which counts for the whole host: "+
				"the paths of this Ingress get 403 there. Ask for the same, or use another host", m.elder(m.Host.ClientAuth.Origin, r),
				OrEvery(m.Host.Host)),
		})
	default:
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.HostConflict, Field: report.AnnotationField(report.ClientAuthSecret),
			Message: fmt.Sprintf("%s asks the clients of %s for certificates in another way, which counts for the whole host",
				m.elder(m.Host.ClientAuth.Origin, r), OrEvery(m.Host.Host)),
		})
	}
}

func sameClientAuth(a, b *ir.ClientAuth) bool {
	x, y := *a, *b
	x.Origin, y.Origin = ir.Origin{}, ir.Origin{}
	return x == y
}

// addFallback adds the backend of an Ingress without rules. If that asks for certificates, and the host does not ask for the
// same, all of its requests are refused: the clients of the host are not verified as it wants.
func (m *merging) addFallback(r *Contribution) {
	if m.Host.Host == "" {
		m.clientAuth(r)
	}
	p := r.Fallback
	if r.ClientAuth != nil && (m.Host.ClientAuth == nil || !sameClientAuth(m.Host.ClientAuth, r.ClientAuth)) {
		closed := *p
		closed.Filters = slices.Concat([]ir.Filter{ir.Forbidden}, p.Filters)
		p = &closed
	}
	m.add(r, p)
}

// unsecured warns the Ingresses of a host whose endpoints speak TLS, and that have no proxy-ssl-secret, of another Ingress that has
// one: with ingress-nginx its Secret would hold for them, too. Here it does not, because an Ingress must not show the client
// certificate of another owner.
func (m *merging) unsecured(results []*Contribution) {
	// All paths of an Ingress have the same.
	i := slices.IndexFunc(results, func(r *Contribution) bool {
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
					"%s has %s for the same host, which holds for its own paths only: the endpoints of this Ingress are not "+
						"verified, and are shown no certificate. To have the same here, set it here too; to have this Event no more, set "+
						"proxy-ssl-location-only in the ConfigMap to true", results[i].Ref(), report.BackendTLSSecret),
			})
		}
	}
}
