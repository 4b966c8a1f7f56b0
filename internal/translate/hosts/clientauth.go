package hosts

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// clientAuths determines the client certificate settings of the host. Ingresses in the namespace that owns the host
// take precedence.
func (m *mergeState) clientAuths() {
	for _, own := range []bool{true, false} {
		for r := range m.ofOwner(own) {
			m.clientAuth(r)
		}
		for _, r := range m.fallbacks {
			if m.Host.Host == "" && m.Owner.Is(r.namespace()) == own {
				m.clientAuth(r)
			}
		}
	}
}

// clientAuth applies the client certificate settings of one Ingress, which configure the host as a whole. The oldest
// Ingress that requires client certificates, in the namespace that owns the host, determines the settings. Other
// Ingresses in this namespace with different settings only get a warning, because they are assumed to belong to the
// same team, as in ingress-nginx. If an Ingress of another namespace has different settings, its paths return 403.
// Otherwise clients that this Ingress does not accept could request these paths.
func (m *mergeState) clientAuth(r *Contribution) {
	own := m.Owner.Is(r.namespace())
	switch {
	case r.ClientAuth == nil || !own && !m.serves(r):
	case own && m.Host.ClientAuth == nil:
		m.Host.ClientAuth = r.ClientAuth
	case m.Host.ClientAuth != nil && sameClientAuth(m.Host.ClientAuth, r.ClientAuth):
	case !own:
		if m.conflicting == nil {
			m.conflicting = map[*Contribution]bool{}
		}
		m.conflicting[r] = true
		m.problem(r, report.Problem{
			Severity: report.Error, Reason: report.HostConflict, Field: report.AnnotationField(report.ClientAuthSecret),
			Message: m.otherClientAuth(r) +
				": requests for the paths of this Ingress get 403 on this host. Use the same annotations, or another " +
				"host",
		})
	default:
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.HostConflict,
			Field: report.AnnotationField(report.ClientAuthSecret),
			Message: fmt.Sprintf(
				"%s has different auth-tls-* annotations for %s, and only these apply to the host",
				m.elder(m.Host.ClientAuth.Origin, r), OrEvery(m.Host.Host)),
		})
	}
}

// otherClientAuth returns the message for an Ingress whose client certificate settings differ from the settings of the
// namespace that owns the host. The Ingress is in another namespace.
func (m *mergeState) otherClientAuth(r *Contribution) string {
	if m.Host.ClientAuth == nil {
		return fmt.Sprintf("%s owns %s, and requires no client certificates on this host",
			m.ownerFor(r),
			OrEvery(m.Host.Host))
	}
	return fmt.Sprintf("%s has different auth-tls-* annotations for %s, and only these apply to the host",
		m.elder(m.Host.ClientAuth.Origin, r), OrEvery(m.Host.Host))
}

func sameClientAuth(a, b *ir.ClientAuth) bool {
	x, y := *a, *b
	x.Origin, y.Origin = ir.Origin{}, ir.Origin{}
	return x == y
}

// addFallback adds the default backend of an Ingress without rules to the host. If the Ingress requires client
// certificates and the host has different client certificate settings, all requests for the default backend get 403,
// because the host does not verify clients as the Ingress requires.
func (m *mergeState) addFallback(r *Contribution) {
	p := r.Fallback
	if r.ClientAuth != nil && (m.Host.ClientAuth == nil || !sameClientAuth(m.Host.ClientAuth, r.ClientAuth)) {
		closed := *p
		closed.Filters = slices.Concat([]ir.Filter{ir.Forbidden}, p.Filters)
		closed.Early, closed.BeforeLimits = p.Early+1, p.BeforeLimits+1
		p = &closed
	}
	m.add(r, p)
}

// The method unsecured adds a warning to each Ingress that has no proxy-ssl-secret and whose endpoints use TLS, if
// another Ingress for the same host has a proxy-ssl-secret. In ingress-nginx, the Secret would apply to both Ingresses.
// Here it does not, because otherwise an Ingress could use the client certificate of another tenant.
func (m *mergeState) unsecured(results []*Contribution) {
	// All paths of an Ingress have the same settings for TLS connections to endpoints, so checking the first path is
	// sufficient.
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
				Severity: report.Warning, Reason: report.HostConflict, Field: "metadata.annotations",
				Message: fmt.Sprintf(
					"%s sets %s for the same host, which applies only to its own paths: the endpoints of this "+
						"Ingress are not verified, and get no client certificate. To change this, set the "+
						"annotation here, too. To disable this Event, set proxy-ssl-location-only in the ConfigMap "+
						"to true",
					results[i].Ref(), report.BackendTLSSecret),
			})
		}
	}
}
