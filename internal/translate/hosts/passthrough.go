package hosts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// passthrough forwards the TLS connections of the host to the backend of its path "/" if an Ingress requests this. In
// ingress-nginx any Ingress for the host can request it. Here the Ingress must be in the namespace that owns the host,
// so that other tenants cannot take over the connections.
func (m *mergeState) passthrough(results []*Contribution) {
	host := m.Host.Host
	var chosen *Contribution
	for _, r := range results {
		if r.Rules(host) && r.PassesThrough && m.mayPass(r) && chosen == nil {
			chosen = r
		}
	}
	if chosen == nil {
		return
	}
	root := m.root(chosen)
	closed, status := m.closes(root)
	switch {
	case root.path == nil:
		m.problem(chosen, report.Problem{
			Severity: report.Warning, Reason: report.InvalidPath, Field: report.AnnotationField(report.SSLPassthrough),
			Message: fmt.Sprintf(
				"ssl-passthrough has no effect on the host %s, because the backend of the path / would get the "+
					"connections, and there is no such path: add it", host),
		})
		return
	case closed != nil:
		m.keepOut(chosen, closed, status)
		return
	}
	m.Host.Passthrough = &ir.StreamRoute{
		Protocol: ir.TCP, ServerNames: []string{host}, Backends: ir.To(root.path.Backend), Origin: chosen.Ref(),
	}
	m.PassedIn = chosen.Object.GetNamespace()
	if m.Certificate != nil && m.Certificate.Automated {
		// The backend terminates TLS with its own certificate, so no certificate has to be issued.
		m.Certificate = nil
	}
	m.Implied = nil
	m.addPassthroughProblems(results, chosen, root)
}

// keepOut adds a problem to chosen, the object that requests passthrough: TLS connections are not passed through,
// because another object (the parameter closed) or chosen itself rejects all requests for the path "/". With
// passthrough, clients could reach a backend that must not get their requests.
func (m *mergeState) keepOut(chosen, closed *Contribution, status string) {
	who, why, severity := "this Ingress", "rejects all requests for the path /", report.Error
	see := ". See its other problems"
	if chosen != closed {
		who, see = closed.Ref().String(), ". See the verdict on that object"
	}
	if status == "503" && closed.Maintenance && !closed.Closed {
		why, see, severity = "is closed for maintenance", "", report.Warning
	}
	m.problem(chosen, report.Problem{
		Severity: severity, Reason: report.InvalidAnnotation, Field: report.AnnotationField(report.SSLPassthrough),
		Message: fmt.Sprintf(
			"the TLS connections of the host %s are not passed through, because %s %s: the controller terminates TLS, "+
				"and requests get %s%s", m.Host.Host, who, why, status, see),
	})
}

// If the settings of an object make the host reject all requests for the path "/", the method closes returns this
// object and the status code of the responses. Otherwise it returns nil.
func (m *mergeState) closes(root claim) (by *Contribution, status string) {
	auth := m.Host.ClientAuth
	switch {
	case root.by == nil:
		return nil, ""
	case m.conflicting[root.by]:
		return root.by, "403"
	case root.by.Closed, root.by.Maintenance:
		return root.by, "503"
	case auth != nil && auth.Closed:
		return cmp.Or(m.resultOf(auth.Origin), root.by), "403"
	}
	return nil, ""
}

// mayPass reports whether an Ingress may request passthrough for the host. If not, it adds a problem that explains why.
func (m *mergeState) mayPass(r *Contribution) bool {
	switch {
	case m.Host.Host == "":
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.InvalidHost, Field: report.AnnotationField(report.SSLPassthrough),
			Message: "ssl-passthrough has no effect on the rule without a host, because connections are passed " +
				"through by their server name: add a host to the rule",
		})
	case m.Owner.Is(r.namespace()):
		return true
	case m.serves(r):
		m.problem(r, report.Problem{
			Severity: report.Error, Reason: report.HostConflict, Field: report.AnnotationField(report.SSLPassthrough),
			Message: fmt.Sprintf(
				"ssl-passthrough has no effect on the host %s, because %s in another namespace owns this host: set "+
					"ssl-passthrough there, or use another host", m.Host.Host, m.ownerFor(r)),
		})
	}
	return false
}

// root returns the path "/" of the namespace that owns the host, or the zero value if this namespace has no such path.
// A path of another namespace is never returned, because connections must not be passed through to its backend.
func (m *mergeState) root(chosen *Contribution) claim {
	for _, kind := range []ir.MatchType{ir.MatchPrefix, ir.MatchExact} {
		c, ok := m.taken[m.key(chosen, ir.PathMatch{Type: kind, Path: "/"})]
		if ok && m.Owner.Is(c.by.namespace()) {
			return c
		}
	}
	return claim{}
}

// addPassthroughProblems warns the Ingresses with other paths on the host: because TLS connections are passed through,
// these paths only get requests without TLS.
func (m *mergeState) addPassthroughProblems(results []*Contribution, chosen *Contribution, root claim) {
	for _, r := range results {
		i := slices.IndexFunc(r.Paths[m.Host.Host], func(p *Path) bool { return p != root.path })
		if i < 0 {
			continue
		}
		path := r.Paths[m.Host.Host][i]
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.PathConflict, Field: path.Field,
			Message: fmt.Sprintf(
				"the path %s of the host %s gets only requests without TLS, because ssl-passthrough of %s forwards "+
					"all TLS connections of the host to the backend of its path "+
					"/", path.Match.Path, m.Host.Host, chosen.Ref()),
		})
	}
}
