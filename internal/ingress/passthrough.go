package ingress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

const passthroughField = "metadata.annotations[" + annotations.Prefix + "ssl-passthrough]"

// PassthroughIsOff is what an Ingress is told that asks for ssl-passthrough where the options have it turned off.
const PassthroughIsOff = "ssl-passthrough has no effect, because the administrator has not turned it on: TLS ends here. Set the option " +
	"ssl_passthrough in the Caddyfile"

// passthrough reads whether the Ingress wants the TLS of its hosts to end at the backend.
func (r *reading) passthrough() {
	switch {
	case !r.annotations.Passthrough:
		return
	case !r.options.Passthrough:
		r.problem(report.Warning, report.InvalidAnnotation, passthroughField, PassthroughIsOff)
		return
	}
	r.PassesThrough = true
}

// VoidFor is what there is to say of annotations that have no effect on the connections of these hosts, which are passed
// through because the Ingress, among others, asks for it. all says that it has no other hosts. It is nil where nothing is void.
func (r *Result) VoidFor(hosts []string, all bool) *report.Problem {
	void := annotations.VoidWithPassthrough(r.Object.Annotations)
	if len(void) == 0 || len(hosts) == 0 || r.keepsOut() {
		return nil
	}
	whose, then := "", ", and remove them"
	if !all {
		whose, then = " of "+strings.Join(hosts, ", "), "; for the other hosts they count"
	}
	return &report.Problem{
		Severity: report.Warning, Reason: report.InvalidAnnotation, Field: passthroughField,
		Message: fmt.Sprintf("TLS connections%s go to the backend as they are, so that these annotations count for requests without TLS "+
			"only: %s. Let the backend do what they ask for%s", whose, strings.Join(void, ", "), then),
	}
}

// passesRoot says whether the Ingress wants TLS connections to go to the backend of this path.
func (r *reading) passesRoot(match ir.Match) bool {
	return r.PassesThrough && !r.keepsOut() && match.Path == "/"
}

// keepsOut says that no request for a path of the Ingress gets to a backend.
func (r *Result) keepsOut() bool { return r.Closed || r.ClientAuth != nil && r.ClientAuth.Closed }

// hostless tells an Ingress with nothing but a default backend that nothing is passed on to that.
func (r *reading) hostless() {
	if r.PassesThrough {
		r.problem(report.Warning, report.InvalidHost, passthroughField, "ssl-passthrough has no effect on a default backend without rules: "+
			"connections are passed through by the name that the client asks for; write a rule with a host")
	}
}

// passthrough hands the TLS connections of the host to the backend of its path "/", if an Ingress wants that. As in
// ingress-nginx any Ingress may; but one of another namespace than the oldest one of the host would take the connections
// away from people who have not agreed.
func (m *merging) passthrough(results []*Result) {
	host := m.Host.Host
	var first, chosen *Result
	for _, r := range results {
		if !r.rules(host) {
			continue
		}
		if first == nil {
			first = r
		}
		if r.PassesThrough && m.mayPass(r, first) && chosen == nil {
			chosen = r
		}
	}
	if chosen == nil {
		return
	}
	root := m.root()
	closed, status := m.closes(root)
	switch {
	case root.path == nil:
		m.problem(chosen, report.Problem{
			Severity: report.Warning, Reason: report.InvalidPath, Field: passthroughField,
			Message: fmt.Sprintf("ssl-passthrough has no effect on %s: the backend of its path / would get the connections, and there is no "+
				"such path; write one", host),
		})
		return
	case closed != nil:
		m.keepOut(chosen, closed, status)
		return
	}
	m.Host.Passthrough = root.path.Backend
	m.PassedIn = chosen.Object.Namespace
	if m.Certificate != nil && m.Certificate.Automated {
		// Nobody would be shown it.
		m.Certificate = nil
	}
	m.Implied = nil
	m.tellOthers(results, chosen, root)
}

// keepOut says that connections do not go to a backend that requests do not get to, either: whoever keeps those out would not
// want anybody to come in by another way.
func (m *merging) keepOut(chosen, closed *Result, status string) {
	who, why := "this Ingress", "Its other problems say"
	if chosen != closed {
		who, why = refOf(closed).String(), "What is said of that object says"
	}
	m.problem(chosen, report.Problem{
		Severity: report.Error, Reason: report.InvalidAnnotation, Field: passthroughField,
		Message: fmt.Sprintf("the TLS connections of %s are not passed through, because the path / is closed by %s: they end here, and it "+
			"answers %s. %s why", m.Host.Host, who, status, why),
	})
}

// closes returns the Ingress that lets no request get to the backend of the path "/", or nil, and what the answer is.
func (m *merging) closes(root claim) (by *Result, status string) {
	auth := m.Host.ClientAuth
	switch {
	case root.by == nil:
		return nil, ""
	case m.outvoted[root.by]:
		return root.by, "403"
	case root.by.Closed:
		return root.by, "503"
	case auth != nil && auth.Closed:
		return cmp.Or(m.resultOf(auth.Origin), root.by), "403"
	}
	return nil, ""
}

// mayPass says whether an Ingress may ask for the connections of the host, which belongs to the first one.
func (m *merging) mayPass(r, first *Result) bool {
	switch {
	case m.Host.Host == "":
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.InvalidHost, Field: passthroughField,
			Message: "ssl-passthrough has no effect on the rule without a host: connections are passed through by the name that the client " +
				"asks for; give the rule a host",
		})
	case r.Object.Namespace != first.Object.Namespace:
		m.problem(r, report.Problem{
			Severity: report.Error, Reason: report.HostConflict, Field: passthroughField,
			Message: fmt.Sprintf("ssl-passthrough has no effect on %s: %s has this host, and is of another namespace. Let it ask for "+
				"ssl-passthrough, or use another host", m.Host.Host, snapshot.Elder(first.Object, r.Object)),
		})
	default:
		return true
	}
	return false
}

// root is the path "/" of the host; without one it is empty.
func (m *merging) root() claim {
	for _, kind := range []ir.MatchType{ir.MatchPrefix, ir.MatchExact} {
		if c, ok := m.taken[m.key(ir.Match{Type: kind, Path: "/"})]; ok {
			return c
		}
	}
	return claim{}
}

// tellOthers tells the Ingresses of the host that their other paths are not asked over TLS.
func (m *merging) tellOthers(results []*Result, chosen *Result, root claim) {
	for _, r := range results {
		i := slices.IndexFunc(r.Paths[m.Host.Host], func(p *Path) bool { return p != root.path })
		if i < 0 {
			continue
		}
		path := r.Paths[m.Host.Host][i]
		m.problem(r, report.Problem{
			Severity: report.Warning, Reason: report.PathConflict, Field: path.Field,
			Message: fmt.Sprintf("the path %s of %s is for requests without TLS only: ssl-passthrough of %s hands all TLS connections of the "+
				"host to the backend of its path /", path.Match.Path, m.Host.Host, refOf(chosen)),
		})
	}
}
