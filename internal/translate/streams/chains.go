package streams

import (
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// streamChains is the annotation with which a Service selects stream chains by their names. The administrator defines
// the chains in the Caddyfile. A chain may restrict access, so the ports stay closed if a name is unknown.
var streamChains = Annotation{
	Name: prefix + "stream-chains",
	Doc: "The names of chains, which the option [`stream_chain`](caddyfile.md#stream_chain) defines in the " +
		"Caddyfile. Connections of TCP ports pass through the chains in the order of this list, after the PROXY " +
		"protocol header and before TLS is terminated. If the Caddyfile does not define one of the chains, the ports " +
		"stay closed.",
	Values: "comma-separated names", Example: "office,slow", Default: "none",
	Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Chains }, annotations.ReadChains),
	OnError: (*Settings).close, Meanwhile: staysClosed + ", because a chain may reject connections",
}

// chained returns a problem if the Service selects a stream chain that the administrator has not defined. Otherwise it
// returns nil.
func (r *reading) chained(s *Settings) *report.Problem {
	err := annotations.CheckChains("stream_chain", s.Chains, r.options.Chains)
	if err == nil {
		return nil
	}
	return &report.Problem{
		Severity: report.Error, Reason: report.InvalidAnnotation, Field: report.AnnotationField(streamChains.Name),
		Message: err.Error() + report.Meanwhile + streamChains.Meanwhile,
	}
}
