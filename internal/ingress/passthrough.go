package ingress

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// PassthroughIsOff is what an Ingress is told that asks for ssl-passthrough where the options have it turned off.
const PassthroughIsOff = "ssl-passthrough has no effect, because the administrator has not turned it on: TLS ends here. Set the option " +
	"ssl_passthrough in the Caddyfile"

// passthroughBesideRanges is for an Ingress that lets in some addresses only. The list is not looked at for connections that are passed
// through, so that none may be.
const passthroughBesideRanges = "the TLS connections are not passed through, because a list of source ranges says which clients may come, and " +
	"nothing looks at it there: they end here. Remove one of the two"

// passthrough reads whether the Ingress wants the TLS of its hosts to end at the backend.
func (r *reading) passthrough() {
	switch {
	case !r.annotations.Passthrough:
		return
	case !r.options.Passthrough:
		r.problem(report.Warning, report.InvalidAnnotation, report.AnnotationField(report.SSLPassthrough), PassthroughIsOff)
		return
	case r.annotations.SourceRanges.Allow != nil || r.annotations.SourceRanges.Deny != nil:
		r.problem(report.Error, report.InvalidAnnotation, report.AnnotationField(report.SSLPassthrough), passthroughBesideRanges)
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
		Severity: report.Warning, Reason: report.InvalidAnnotation, Field: report.AnnotationField(report.SSLPassthrough),
		Message: fmt.Sprintf("TLS connections%s go to the backend as they are, so that these annotations count for requests without TLS "+
			"only: %s. Let the backend do what they ask for%s", whose, strings.Join(void, ", "), then),
	}
}

// passesRoot says whether the Ingress wants TLS connections to go to the backend of this path.
func (r *reading) passesRoot(match ir.PathMatch) bool {
	return r.PassesThrough && !r.keepsOut() && match.Path == "/"
}

// keepsOut says that no request for a path of the Ingress gets to a backend.
func (r *Result) keepsOut() bool { return r.Closed || r.ClientAuth != nil && r.ClientAuth.Closed }

// hostless tells an Ingress with nothing but a default backend that nothing is passed on to that.
func (r *reading) hostless() {
	if r.PassesThrough {
		r.problem(report.Warning, report.InvalidHost, report.AnnotationField(report.SSLPassthrough),
			"ssl-passthrough has no effect on a default backend without rules: "+
				"connections are passed through by the name that the client asks for; write a rule with a host")
	}
}
