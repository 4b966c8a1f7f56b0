package hosts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

// HostContext holds the information about related hosts that Merge needs for a host: the ownership policy, the wildcard
// that covers the host, and the hosts below it. With the zero value, no wildcard covers the host, and the policy allows
// everything.
type HostContext struct {
	Policy ownership.Policy
	// Above is the result of Merge for the wildcard that covers the host. It is nil if there is no such wildcard.
	Above *Merged
	// NamedBy is the namespace that uses this host as an alias. It is empty if the host is not an alias, or if a rule
	// for the host exists.
	NamedBy string
	// Below contains, for each namespace, the number of its rules for hosts that this wildcard covers. It is nil if
	// there are no such rules, or if the host is not a wildcard.
	Below *shrinking.Map[string, int]
}

// owner returns the owner of a host. A namespace does not become the owner by serving only ACME challenges on the host,
// which Policy.Solvers allows.
func (s *HostContext) owner(host string, results, fallbacks []*Contribution) ownership.Owner {
	return s.Policy.Of(host, func(yield func(kinds.Object) bool) {
		for _, r := range results {
			if r.Canary == nil && r.Rules(host) && !s.onlySolves(r, host) && !yield(r.Object) {
				return
			}
		}
		for _, r := range fallbacks {
			if host == "" && r.Canary == nil && !yield(r.Object) {
				return
			}
		}
	}, s.ownerAbove())
}

func (s *HostContext) ownerAbove() ownership.Owner {
	if s.Above == nil {
		return ownership.Owner{}
	}
	return s.Above.Owner
}

func (s *HostContext) onlySolves(r *Contribution, host string) bool {
	paths := r.Paths[host]
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(p *Path) bool { return !s.solves(r, p) })
}

func (s *HostContext) solves(r *Contribution, p *Path) bool {
	return !p.Regex && !p.Last && s.Policy.Solves(r.namespace(), p.Match)
}

// The result of the method serves is true if the ownership policy allows the paths of the object r to be served on the
// host.
func (m *mergeState) serves(r *Contribution) bool {
	return m.around.Policy.Serves(m.Host.Host, m.Owner, r.namespace())
}

// The result of the method admits is true if the path p of the object r may be served on the host. A path for ACME
// challenges may be allowed even if other paths are not.
func (m *mergeState) admits(r *Contribution, p *Path) bool {
	return m.serves(r) || m.around.solves(r, p)
}

// The result of the method known is true if the host is served: the ownership policy allows at least one path or
// default backend on it.
func (m *mergeState) known() bool {
	host := m.Host.Host
	return host == "" && slices.ContainsFunc(m.fallbacks, m.serves) ||
		slices.ContainsFunc(m.results, func(r *Contribution) bool {
			return r.Rules(host) && (m.serves(r) ||
				slices.ContainsFunc(r.Paths[host], func(p *Path) bool { return m.around.solves(r, p) }))
		})
}

// findPatterns sets m.regex to the namespaces whose paths on the host are matched as regular expressions. In
// ingress-nginx, one path can turn all paths of the host into regular expressions. Here this only affects the paths of
// the same namespace, so that an Ingress cannot change the meaning of other tenants' paths.
func (m *mergeState) findPatterns() {
	for _, r := range m.results {
		if slices.ContainsFunc(r.Paths[m.Host.Host], func(p *Path) bool { return p.Regex && m.admits(r, p) }) {
			if m.regex == nil {
				m.regex = map[string]bool{}
			}
			m.regex[r.namespace()] = true
		}
	}
}

// findSecure sets m.Secure and m.secure. m.Secure is true if the namespace that owns the host configures HTTPS for it.
// m.secure is also true if this namespace owns the wildcard that covers the host, and configures HTTPS for the
// wildcard.
func (m *mergeState) findSecure() {
	m.Secure = slices.ContainsFunc(m.results,
		func(r *Contribution) bool { return m.Owner.Is(r.namespace()) && r.secures(m.Host.Host) })
	above := m.around.Above
	m.secure = m.Secure || above != nil && above.Secure && m.Owner.Is(above.Owner.Namespace)
}

// opensForStrangers reports whether p is an ACME challenge path from another namespace on a host that requires client
// certificates. Challenge paths are exempt from that requirement, so the other namespace could use p to obtain a
// certificate for the host. In this case a problem is added to r, and the path must return 403.
func (m *mergeState) opensForStrangers(r *Contribution, p *Path) bool {
	if m.Host.ClientAuth == nil || m.Owner.Is(r.namespace()) || !strings.HasPrefix(p.Match.Path, ownership.Challenges) {
		return false
	}
	m.problem(r, report.Problem{
		Severity: report.Error, Reason: report.HostConflict, Field: p.Field,
		Message: fmt.Sprintf(
			"requests for the path %s of %s get 403: %s requires client certificates, and on such a host only the "+
				"namespace that owns the host may serve the challenges of certificate authorities", p.Match.Path,
			OrEvery(m.Host.Host),
			m.ownerFor(r)),
	})
	return true
}

// ownerFor returns the name of the object because of which its namespace owns the merged host, or "no namespace". The
// name is used in a problem reported on r.
func (m *mergeState) ownerFor(r *Contribution) string {
	if m.Owner.By == nil {
		return "no namespace"
	}
	if snapshot.Older(m.Owner.By, r.Object) < 0 {
		return snapshot.Elder(m.Owner.By, r.Object)
	}
	return snapshot.RefOf(m.Owner.By).String()
}

// addOwnerProblems reports that several namespaces have rules for the host. Objects of other namespaces get a problem
// that names the owner of the host. The oldest object of the owner gets a problem that lists these objects.
func (m *mergeState) addOwnerProblems() {
	var served, refused []string
	for _, r := range m.results {
		switch {
		case m.Owner.Is(r.namespace()) || !r.Rules(m.Host.Host) || m.around.onlySolves(r, m.Host.Host):
		case m.serves(r):
			served = append(served, r.Ref().String())
			m.problem(r, report.Problem{Severity: report.Info, Reason: report.HostConflict, Field: "spec.rules",
				Message: fmt.Sprintf(
					"%s in another namespace owns %s: the paths of this Ingress are served on the host, but "+
						"that namespace decides about settings of the whole "+
						"host", m.ownerFor(r), OrEvery(m.Host.Host))})
		default:
			refused = append(refused, r.Ref().String())
			m.refuse(r, "spec.rules")
		}
	}
	for _, r := range m.fallbacks {
		if m.Host.Host == "" && !m.serves(r) {
			m.refuse(r, "spec.defaultBackend")
		}
	}
	m.addProblemsOfOwner(served, refused)
	m.addWildcardProblems()
}

// addWildcardProblems reports that a wildcard and a host below it belong to different namespaces, and which namespace
// gets the requests. The messages contain names of namespaces, but no names of objects: otherwise, a change of one
// object could change the messages for many hosts.
func (m *mergeState) addWildcardProblems() {
	host := m.Host.Host
	if m.Owner.By == nil || m.around.Policy.Exclusive {
		return
	}
	of := m.resultOf(snapshot.RefOf(m.Owner.By))
	if of == nil {
		return
	}
	warn := func(message string, args ...any) {
		m.problem(of, report.Problem{
			Severity: report.Info, Reason: report.HostConflict, Field: "spec.rules",
			Message: fmt.Sprintf(message, args...),
		})
	}
	if above := m.around.ownerAbove(); above.By != nil && !m.Owner.Is(above.Namespace) {
		warn("the namespace %s owns the hosts %s, but requests for the host %s are served by this "+
			"namespace", above.Namespace,
			WildcardOf(host), host)
	}
	var others []string
	for namespace := range m.around.Below.Keys() {
		if !m.Owner.Is(namespace) {
			others = append(others, namespace)
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		warn(
			"other namespaces own hosts below %s, and get the requests for these hosts: %s. To keep all of them in "+
				"one namespace, use the option host_ownership or host_owner", host,
			report.List(others, len(others), report.MaxListed))
	}
}

// refuse adds a problem to r: the paths of r are not served on the host, because the ownership policy does not allow
// it.
func (m *mergeState) refuse(r *Contribution, field string) {
	host := m.Host.Host
	message := fmt.Sprintf(
		"%s in another namespace owns %s: this Ingress is not served on the host, because of the option "+
			"\"host_ownership namespace\". Use another host", m.ownerFor(r), OrEvery(host))
	if !m.around.Policy.Admits(host, r.namespace()) {
		list, _ := m.around.Policy.ReservedFor(host)
		message = fmt.Sprintf(
			"this Ingress is not served for %s, which the option host_owner reserves for the namespaces %s. Use "+
				"another host",
			OrEvery(host), report.List(list, len(list), report.MaxListed))
	}
	m.problem(r, report.Problem{Severity: report.Error, Reason: report.HostConflict, Field: field, Message: message})
}

// addProblemsOfOwner adds problems to the oldest object in the namespace that owns the host. They name the objects of
// other namespaces that have rules for the host. served contains the names of the objects whose paths are served: these
// objects cause a warning, or a message of severity Info if the administrator reserved the host for certain namespaces.
// refused contains the names of the objects whose paths are not served: these objects cause a message of severity Info.
func (m *mergeState) addProblemsOfOwner(served, refused []string) {
	if m.Owner.By == nil {
		return
	}
	by := snapshot.RefOf(m.Owner.By)
	of := m.resultOf(by)
	if of == nil {
		return
	}
	if len(served) > 0 {
		severity := report.Warning
		if _, reserved := m.around.Policy.ReservedFor(m.Host.Host); reserved {
			severity = report.Info
		}
		m.problem(of, report.Problem{Severity: severity, Reason: report.HostConflict, Field: "spec.rules",
			Message: fmt.Sprintf(
				"this namespace owns %s, and another namespace defines paths of it, too: %s. To keep a host in one "+
					"namespace, use the option host_ownership or host_owner", OrEvery(m.Host.Host),
				report.List(served, len(served), report.MaxListed))})
	}
	if len(refused) > 0 {
		m.problem(of, report.Problem{Severity: report.Info, Reason: report.HostConflict, Field: "spec.rules",
			Message: fmt.Sprintf(
				"this namespace owns %s, and another namespace that names it is rejected: %s", OrEvery(m.Host.Host),
				report.List(refused, len(refused), report.MaxListed))})
	}
}

// handshake sets the TLS versions and ciphers of the host. Only Ingresses in the namespace that owns the host count:
// the versions come from the oldest Ingress, and the ciphers from the oldest Ingress that configures ciphers.
func (m *mergeState) handshake() {
	var chosen *Contribution
	for r := range m.ofOwner(true) {
		if m.Host.TLS == nil {
			policy := r.TLS
			m.Host.TLS, m.Host.TLSOrigin = &policy, r.Ref().String()
		}
		switch {
		case !r.AsksCiphers:
		case chosen == nil:
			chosen = r
			m.Host.TLS = &ir.TLSPolicy{Version: m.Host.TLS.Version, Ciphers: r.TLS.Ciphers}
			m.Host.TLSOrigin = r.Ref().String()
		case !slices.Equal(chosen.TLS.Ciphers, r.TLS.Ciphers):
			m.otherCiphers(r, "the setting has no effect on "+OrEvery(m.Host.Host)+": "+
				snapshot.Elder(chosen.Object, r.Object)+" has different ssl-ciphers, which are used instead")
		}
	}
	for r := range m.ofOwner(false) {
		if r.AsksCiphers && m.serves(r) && (m.Host.TLS == nil || !slices.Equal(m.Host.TLS.Ciphers, r.TLS.Ciphers)) {
			m.otherCiphers(r, m.ownerFor(r)+" in another namespace owns "+OrEvery(m.Host.Host)+
				": its ssl-ciphers are used")
		}
	}
}

func (m *mergeState) otherCiphers(r *Contribution, message string) {
	m.problem(r, report.Problem{
		Severity: report.Warning, Reason: report.HostConflict, Field: report.AnnotationField(report.Ciphers),
		Message: message,
	})
}

// ofOwner yields the objects with a rule for the host, the oldest first. If own is true, it yields the objects in the
// namespace that owns the host. Otherwise it yields the objects in all other namespaces.
func (m *mergeState) ofOwner(own bool) func(yield func(*Contribution) bool) {
	return func(yield func(*Contribution) bool) {
		for _, r := range m.results {
			if r.Rules(m.Host.Host) && m.Owner.Is(r.namespace()) == own && !yield(r) {
				return
			}
		}
	}
}
