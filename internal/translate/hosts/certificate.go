package hosts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// certificates chooses the certificate of the host. Only objects in the namespace that owns the host can configure its
// certificate. Entries of spec.tls in other namespaces have no effect on the host.
func (m *mergeState) certificates() {
	host := m.Host.Host
	for _, r := range m.results {
		if c := r.Certificates[host]; c != nil && m.mayCertify(r) {
			m.certificate(r, c)
		}
		if m.Implied == nil && m.Owner.Is(r.namespace()) {
			m.Implied = r.Implied[host]
		}
	}
	for _, r := range m.results {
		if c := r.Certificates[host]; c != nil && !m.mayCertify(r) {
			m.reportForeignEntry(r, c)
		}
	}
	m.certificateOfWildcard()
	if m.Certificate != nil {
		m.Implied = nil
	}
}

// mayCertify reports whether an object may configure the certificate of the host.
func (m *mergeState) mayCertify(r *Contribution) bool {
	host, namespace := m.Host.Host, r.namespace()
	above := m.around.ownerAbove()
	switch {
	case m.Owner.By != nil:
		return m.Owner.Is(namespace)
	case !m.around.Policy.Admits(host, namespace):
		return false
	case strings.HasPrefix(host, "*.") && m.rulesBelow(namespace), m.around.NamedBy == namespace:
		return true
	case above.By != nil:
		return above.Is(namespace)
	}
	return r.catchesAll()
}

// onDemand sets the object that requests certificates on demand for the names that the host serves: the oldest such
// object in the namespace that owns the host.
func (m *mergeState) onDemand() {
	if m.Host.Host != "" && !strings.HasPrefix(m.Host.Host, "*.") {
		return
	}
	for r := range m.contributions {
		serves := r.Rules(m.Host.Host) || m.Host.Host == "" && r.Fallback != nil
		if r.OnDemand && serves && m.Owner.Is(r.namespace()) {
			m.Host.OnDemand = r.Ref()
			return
		}
	}
}

func (m *mergeState) rulesBelow(namespace string) bool {
	return m.around.Below.Get(namespace) > 0
}

// certificate sets the certificate of the host to c, unless an older object has already set another certificate. In
// that case, r gets a warning if c uses different Secrets. It gets no warning if c would come from an issuer, because
// issuers only issue certificates that are used.
func (m *mergeState) certificate(r *Contribution, c *ir.Certificate) {
	switch {
	case m.Certificate == nil:
		m.Certificate, m.Absent = c, slices.Contains(r.Absent, c.Host)
	case m.Certificate.Origin.Namespace != r.namespace() && m.rulesBelow(r.namespace()):
		// The host is a wildcard without a rule, so several namespaces may have a certificate for it.
		m.addCandidate(r, c)
	case c.Automated:
	case m.Certificate.Secret != c.Secret || m.Certificate.SecondSecret != c.SecondSecret:
		other := "another certificate"
		if m.Certificate.Automated {
			other = "the certificate of an issuer"
		}
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.HostConflict, Field: "spec.tls",
			Message: fmt.Sprintf("%s configures %s for %s, which is used", m.elder(m.Certificate.Origin, r),
				other, c.Host),
		})
	}
}

// reportForeignEntry reports that an entry of spec.tls has no effect, because its Ingress may not configure the
// certificate of the host. There is one exception: if the host is a wildcard, the certificate is used for the hosts
// below the wildcard that belong to the namespace of the Ingress.
func (m *mergeState) reportForeignEntry(r *Contribution, c *ir.Certificate) {
	p := report.Problem{Severity: report.Warning, Reason: report.HostConflict, Field: "spec.tls"}
	switch {
	case !m.around.Policy.Admits(c.Host, r.namespace()):
		list, _ := m.around.Policy.ReservedFor(c.Host)
		p.Message = fmt.Sprintf(
			"the entry has no effect on the host %s, which the option host_owner reserves for the namespaces "+
				"%s", c.Host,
			report.List(list, len(list), report.MaxListed))
	case strings.HasPrefix(c.Host, "*.") && m.rulesBelow(r.namespace()):
		m.addCandidate(r, c)
		return
	case c.Automated && m.Certificate != nil:
		return
	case m.Owner.By != nil:
		p.Message = fmt.Sprintf(
			"%s in another namespace owns the host %s: the certificate of the owner is used, and this entry has no "+
				"effect for the host",
			m.ownerFor(r), c.Host)
	default:
		p.Reason, p.Message = report.InvalidHost, noRule(r, c)
	}
	m.problem(r, p)
}

// noRule returns the message for a host in spec.tls for which no Ingress in the same namespace has a rule. As in
// ingress-nginx, the certificate is not used for such a host.
func noRule(r *Contribution, c *ir.Certificate) string {
	if c.Automated {
		return fmt.Sprintf(
			"no certificate is requested for the host %s, because no rule names it: add a rule, or remove the host "+
				"from tls",
			c.Host)
	}
	return fmt.Sprintf(
		"the certificate of the Secret %s is not used for the host %s, because no rule of the namespace %s names "+
			"this host: add a rule, or remove the host from tls", c.Secret, c.Host, r.namespace())
}

// addCandidate adds c to m.Others: the certificate of a namespace that does not own this wildcard. Hosts of this
// namespace below the wildcard may use c. If the Secret of c is missing, addCandidate does nothing, because these hosts
// could not use the certificate.
func (m *mergeState) addCandidate(r *Contribution, c *ir.Certificate) {
	if m.Others[r.namespace()] != nil || slices.Contains(r.Absent, c.Host) {
		return
	}
	if m.Others == nil {
		m.Others = map[string]*ir.Certificate{}
	}
	m.Others[r.namespace()] = c
}

// certificateOfWildcard handles a host without a certificate. If the owner of the host has configured a certificate for
// the wildcard that covers the host, the host uses this certificate. This works even if requests for the wildcard
// itself use the certificate of another namespace.
func (m *mergeState) certificateOfWildcard() {
	above := m.around.Above
	if m.Certificate != nil || m.Implied != nil && m.Implied.Refusal == nil || m.Owner.By == nil || above == nil {
		return
	}
	if c := above.Others[m.Owner.Namespace]; c != nil {
		own := *c
		own.Host = m.Host.Host
		m.Certificate = &own
	}
}
