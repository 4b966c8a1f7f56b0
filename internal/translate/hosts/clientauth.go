package hosts

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// clientAuths determines which client certificates the host requests. The Ingresses of the owner are considered first.
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

// clientAuth applies the client certificate settings of one Ingress. The oldest Ingress of the owner that has such
// settings decides for the whole host. Like ingress-nginx, clientAuth assumes that the Ingresses of one namespace
// belong to the same people, so an Ingress of the owner with other settings only gets a warning. The paths of an
// Ingress of another namespace return 403 if its settings differ, because the host would let in clients that the
// Ingress does not accept.
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
				": requests for the paths of this Ingress get 403 there. Configure the same, or use another host",
		})
	default:
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.HostConflict,
			Field: report.AnnotationField(report.ClientAuthSecret),
			Message: fmt.Sprintf(
				"%s configures other client certificates for %s, which applies to the whole host",
				m.elder(m.Host.ClientAuth.Origin, r), OrEvery(m.Host.Host)),
		})
	}
}

// otherClientAuth returns the message to an object of another namespace about the client certificates that the owner
// requires.
func (m *mergeState) otherClientAuth(r *Contribution) string {
	if m.Host.ClientAuth == nil {
		return fmt.Sprintf("%s owns %s and requires no client certificates, which applies to the whole host",
			m.ownerFor(r),
			OrEvery(m.Host.Host))
	}
	return fmt.Sprintf("%s configures other client certificates for %s, which applies to the whole host",
		m.elder(m.Host.ClientAuth.Origin, r), OrEvery(m.Host.Host))
}

func sameClientAuth(a, b *ir.ClientAuth) bool {
	x, y := *a, *b
	x.Origin, y.Origin = ir.Origin{}, ir.Origin{}
	return x == y
}

// addFallback adds the default backend of an Ingress without rules. If that Ingress requires client certificates and
// the host does not require the same ones, all its requests get 403, because the host does not verify clients as the
// Ingress requires.
func (m *mergeState) addFallback(r *Contribution) {
	p := r.Fallback
	if r.ClientAuth != nil && (m.Host.ClientAuth == nil || !sameClientAuth(m.Host.ClientAuth, r.ClientAuth)) {
		closed := *p
		closed.Filters = slices.Concat([]ir.Filter{ir.Forbidden}, p.Filters)
		p = &closed
	}
	m.add(r, p)
}

// unsecured warns each Ingress whose endpoints speak TLS and that has no proxy-ssl-secret, if another Ingress of the
// host has one. In ingress-nginx the Secret would apply to both. Here it does not, because an Ingress must not present
// the client certificate of another owner.
func (m *mergeState) unsecured(results []*Contribution) {
	// All paths of an Ingress have the same TLS settings, so the first path is enough.
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
