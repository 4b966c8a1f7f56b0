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

// passthroughBesideRanges is the error for an Ingress with both ssl-passthrough and allowed or denied client addresses.
// The addresses of clients are not checked for passed-through connections, so ssl-passthrough is ignored.
const passthroughBesideRanges = "the TLS connections are not passed through, because the Ingress has a list of " +
	"source ranges, which is not checked for passed-through connections: the controller " +
	"terminates TLS. Remove ssl-passthrough or the list"

// passthrough sets PassesThrough if the Ingress requests passthrough and the settings of the Ingress and of the
// administrator allow it.
func (r *reading) passthrough() {
	switch {
	case !r.annotations.Passthrough:
		return
	case !r.options.Passthrough:
		r.problem(report.Warning, report.InvalidAnnotation, report.AnnotationField(report.SSLPassthrough),
			PassthroughIsOff)
		return
	case r.annotations.SourceRanges.Allow != nil || r.annotations.SourceRanges.Deny != nil:
		r.problem(report.Error, report.InvalidAnnotation, report.AnnotationField(report.SSLPassthrough),
			passthroughBesideRanges)
		return
	}
	r.PassesThrough = true
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

// keepsOut reports whether requests for the Ingress are rejected, because a setting that restricts access is invalid,
// or because the Ingress is closed for maintenance.
func (r *Result) keepsOut() bool {
	return r.Closed || r.Maintenance || r.ClientAuth != nil && r.ClientAuth.Closed
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
