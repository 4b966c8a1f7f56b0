package hosts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// passthrough hands the TLS connections of the host to the backend of its path "/", if an Ingress wants that. As in
// ingress-nginx any Ingress may; but one of another namespace than the owner would take the connections away from people who have not
// agreed.
func (m *merging) passthrough(results []*Contribution) {
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
			Message: fmt.Sprintf("ssl-passthrough has no effect on %s: the backend of its path / would get the connections, and there is no "+
				"such path; write one", host),
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
		// The backend shows a certificate of its own.
		m.Certificate = nil
	}
	m.Implied = nil
	m.addPassthroughProblems(results, chosen, root)
}

// keepOut reports that the TLS connections are not passed through, because the requests for the path "/" are refused: an owner who
// refuses requests does not want their clients to reach the backend by TLS either.
func (m *merging) keepOut(chosen, closed *Contribution, status string) {
	who, why := "this Ingress", "Its other problems say"
	if chosen != closed {
		who, why = closed.Ref().String(), "What is said of that object says"
	}
	m.problem(chosen, report.Problem{
		Severity: report.Error, Reason: report.InvalidAnnotation, Field: report.AnnotationField(report.SSLPassthrough),
		Message: fmt.Sprintf("the TLS connections of %s are not passed through, because the path / is closed by %s: they end here, and it "+
			"answers %s. %s why", m.Host.Host, who, status, why),
	})
}

// closes returns the Ingress that lets no request get to the backend of the path "/", or nil, and what the answer is.
func (m *merging) closes(root claim) (by *Contribution, status string) {
	auth := m.Host.ClientAuth
	switch {
	case root.by == nil:
		return nil, ""
	case m.conflicting[root.by]:
		return root.by, "403"
	case root.by.Closed:
		return root.by, "503"
	case auth != nil && auth.Closed:
		return cmp.Or(m.resultOf(auth.Origin), root.by), "403"
	}
	return nil, ""
}

// mayPass says whether an Ingress may ask for the connections of the host.
func (m *merging) mayPass(r *Contribution) bool {
	switch {
	case m.Host.Host == "":
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.InvalidHost, Field: report.AnnotationField(report.SSLPassthrough),
			Message: "ssl-passthrough has no effect on the rule without a host: connections are passed through by the name that the client " +
				"asks for; give the rule a host",
		})
	case m.Owner.Is(r.namespace()):
		return true
	case m.serves(r):
		m.problem(r, report.Problem{
			Severity: report.Error, Reason: report.HostConflict, Field: report.AnnotationField(report.SSLPassthrough),
			Message: fmt.Sprintf("ssl-passthrough has no effect on %s: %s has this host, and is of another namespace. Let it ask for "+
				"ssl-passthrough, or use another host", m.Host.Host, m.ownerFor(r)),
		})
	}
	return false
}

// root is the path "/" that the owner has; without one it is empty. Nobody else gets connections that the owner hands on.
func (m *merging) root(chosen *Contribution) claim {
	for _, kind := range []ir.MatchType{ir.MatchPrefix, ir.MatchExact} {
		c, ok := m.taken[m.key(chosen, ir.PathMatch{Type: kind, Path: "/"})]
		if ok && m.Owner.Is(c.by.namespace()) {
			return c
		}
	}
	return claim{}
}

// addPassthroughProblems says to the Ingresses of the host that their other paths are not asked over TLS.
func (m *merging) addPassthroughProblems(results []*Contribution, chosen *Contribution, root claim) {
	for _, r := range results {
		i := slices.IndexFunc(r.Paths[m.Host.Host], func(p *Path) bool { return p != root.path })
		if i < 0 {
			continue
		}
		path := r.Paths[m.Host.Host][i]
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.PathConflict, Field: path.Field,
			Message: fmt.Sprintf("the path %s of %s is for requests without TLS only: ssl-passthrough of %s hands all TLS connections of the "+
				"host to the backend of its path /", path.Match.Path, m.Host.Host, chosen.Ref()),
		})
	}
}
