package hosts

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// clientAuths finds out how the clients of the host are asked for certificates. The owner decides first.
func (m *merging) clientAuths() {
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

// clientAuth is that of the oldest Ingress of the owner which has one, for all of the host. Within a namespace the owners of two
// Ingresses are taken for the same people, as with ingress-nginx; an Ingress of another one is closed rather than opened to clients
// that it did not ask for.
func (m *merging) clientAuth(r *Contribution) {
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
			Message: m.otherClientAuth(r) + ": the paths of this Ingress get 403 there. Ask for the same, or use another host",
		})
	default:
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.HostConflict, Field: report.AnnotationField(report.ClientAuthSecret),
			Message: fmt.Sprintf("%s asks the clients of %s for certificates in another way, which counts for the whole host",
				m.elder(m.Host.ClientAuth.Origin, r), OrEvery(m.Host.Host)),
		})
	}
}

// otherClientAuth says to an object of another namespace what the owner asks clients for.
func (m *merging) otherClientAuth(r *Contribution) string {
	if m.Host.ClientAuth == nil {
		return fmt.Sprintf("%s has %s, and asks its clients for no certificates, which counts for the whole host", m.ownerFor(r),
			OrEvery(m.Host.Host))
	}
	return fmt.Sprintf("%s asks the clients of %s for certificates in another way, which counts for the whole host",
		m.elder(m.Host.ClientAuth.Origin, r), OrEvery(m.Host.Host))
}

func sameClientAuth(a, b *ir.ClientAuth) bool {
	x, y := *a, *b
	x.Origin, y.Origin = ir.Origin{}, ir.Origin{}
	return x == y
}

// addFallback adds the backend of an Ingress without rules. If that asks for certificates, and the host does not ask for the
// same, all of its requests are refused: the clients of the host are not verified as it wants.
func (m *merging) addFallback(r *Contribution) {
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
