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
