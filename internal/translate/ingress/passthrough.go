package ingress

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// PassthroughIsOff is the warning for an Ingress with ssl-passthrough if the administrator has not set the option
// ssl_passthrough.
const PassthroughIsOff = "ssl-passthrough has no effect, because the administrator has not enabled it: the " +
	"controller terminates TLS. Set the option ssl_passthrough in the Caddyfile"

// passthrough sets PassesThrough if the Ingress requests passthrough and the administrator allows it. It also sets
// Guard, because another Ingress may request passthrough to the path "/" of this Ingress.
func (r *reading) passthrough() {
	if r.options.Passthrough {
		r.Guard.Step, r.Guard.Rejects, r.Guard.Temporary = r.annotations.PassthroughGuard()
	}
	switch {
	case !r.annotations.Passthrough:
	case r.options.Passthrough:
		r.PassesThrough = true
	default:
		r.problem(report.Warning, report.InvalidAnnotation, report.AnnotationField(report.SSLPassthrough),
			PassthroughIsOff)
	}
}

// VoidFor returns a warning about annotations that have no effect on the given hosts, because the TLS connections for
// these hosts are passed through. It returns nil if there are no such annotations. all is true if hosts contains all
// hosts of the Ingress.
func (r *Result) VoidFor(hosts []string, all bool) *report.Problem {
	void := annotations.VoidWithPassthrough(r.Object.Annotations)
	if len(void) == 0 || len(hosts) == 0 || r.keepsOut() {
		return nil
	}
	whose, then := "", ", and remove the annotations here"
	if !all {
		whose, then = " of "+strings.Join(hosts, ", "), "; they still apply to the other hosts"
	}
	return &report.Problem{
		Severity: report.Warning, Reason: report.InvalidAnnotation,
		Field: report.AnnotationField(report.SSLPassthrough),
		Message: fmt.Sprintf(
			"TLS connections%s are passed through to the backend, so these annotations apply only to requests "+
				"without TLS: %s. Configure the backend in the same way%s", whose, strings.Join(void, ", "), then),
	}
}

// passesRoot reports whether a path is "/" and the TLS connections for the hosts should be passed through to its
// backend.
func (r *reading) passesRoot(match ir.PathMatch) bool {
	return r.PassesThrough && !r.keepsOut() && match.Path == "/"
}

// keepsOut reports whether the Ingress rejects clients whose TLS connections would reach the backend if they were
// passed through.
func (r *Result) keepsOut() bool {
	return r.Guard.Rejects != ir.NoRequests || r.ClientAuth != nil && r.ClientAuth.Closed
}

// The method hostless adds a warning to an Ingress without rules: ssl-passthrough has no effect on it, because
// connections are passed through by host name.
func (r *reading) hostless() {
	if r.PassesThrough {
		r.problem(report.Warning, report.InvalidHost, report.AnnotationField(report.SSLPassthrough),
			"ssl-passthrough has no effect on a default backend without rules, because connections are passed "+
				"through by their server name: add a rule with a host")
	}
}
