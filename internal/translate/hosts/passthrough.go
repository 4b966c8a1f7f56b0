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
	if root.path == nil {
		m.problem(chosen, report.Problem{
			Severity: report.Warning, Reason: report.InvalidPath, Field: report.AnnotationField(report.SSLPassthrough),
			Message: fmt.Sprintf(
				"ssl-passthrough has no effect on the host %s, because the backend of the path / would get the "+
					"connections, and there is no such path: add it", host),
		})
		return
	}
	if m.closes(chosen, root) || m.guards(chosen, root) {
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

// closes reports whether the host rejects all requests for the path "/" because of invalid settings. TLS connections
// are then not passed through, because clients could reach a backend that must not get their requests. closes adds a
// problem to chosen, the object that requests passthrough.
func (m *mergeState) closes(chosen *Contribution, root claim) bool {
	auth := m.Host.ClientAuth
	by, status := root.by, "403"
	switch {
	case m.conflicting[root.by]:
	case root.by.Closed:
		status = "503"
	case m.server != nil && m.server.Server.Closed:
		by, status = m.server, "503"
	case auth != nil && auth.Closed:
		by = cmp.Or(m.resultOf(auth.Origin), root.by)
	default:
		return false
	}
	see := "See its other problems"
	if by != chosen {
		see = "See the verdict on that object"
	}
	m.notPassed(chosen, by, report.Error,
		"rejects all requests for the path /: the controller terminates TLS, and requests get "+status+". "+see)
	return true
}

// guards reports whether passed-through TLS connections would bypass a guard of chosen, the object that requests
// passthrough, of the object with the path "/", or of the server-snippet of the host. If so, guards adds a problem to
// chosen.
func (m *mergeState) guards(chosen *Contribution, root claim) bool {
	by, guard := root.by, root.by.Guard
	if guard.Rejects == ir.NoRequests {
		by, guard = chosen, chosen.Guard
	}
	if guard.Rejects == ir.NoRequests && m.server != nil {
		by, guard = m.server, m.server.Server.Guard
	}
	if guard.Rejects == ir.NoRequests {
		return false
	}
	severity, then := report.Error, ": the controller terminates TLS. Remove ssl-passthrough or this restriction"
	switch {
	case guard.Temporary:
		severity, then = report.Warning, ": the controller terminates TLS"
	case guard.Rejects == ir.SomeRequests:
		then = ": the controller terminates TLS. Remove ssl-passthrough"
	}
	m.notPassed(chosen, by, severity, guard.describe()+then)
	return true
}

// describe says which requests the guard rejects, for a message about passthrough.
func (g *Guard) describe() string {
	switch g.Rejects {
	case ir.AllRequests:
		return "rejects all requests (" + g.Step + ")"
	case ir.SomeRequests:
		return "has chains of the option chain_default, which passed-through connections would bypass"
	case ir.NoRequests, ir.SomeClients:
	}
	return "accepts only some client addresses (" + g.Step + "), which are not checked for " +
		"passed-through connections"
}

// notPassed adds a problem to chosen, the object that requests passthrough: TLS connections are not passed through
// because of another object or chosen itself, the parameter by. why is the rest of the message.
func (m *mergeState) notPassed(chosen, by *Contribution, severity report.Severity, why string) {
	whose := "this Ingress"
	if by != chosen {
		whose = by.Ref().String()
	}
	m.problem(chosen, report.Problem{
		Severity: severity, Reason: report.InvalidAnnotation, Field: report.AnnotationField(report.SSLPassthrough),
		Message: fmt.Sprintf("the TLS connections of the host %s are not passed through, because %s %s", m.Host.Host,
			whose, why),
	})
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
