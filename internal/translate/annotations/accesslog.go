package annotations

import "github.com/k8singress/k8singress/internal/model/nginx"

// enableRewriteLog has no effect, because the authors of Ingresses cannot read such a log.
var enableRewriteLog = Annotation{
	Name: "enable-rewrite-log", Risk: RiskLow,
	Ignored: "what a path became is $uri in log-format-upstream, and $request_uri what it was; rewrites have no log " +
		"of their own",
}

var enableAccessLog = Annotation{
	Name:   "enable-access-log",
	Doc:    "Notes the requests of this Ingress in the [access log](configmap.md#log-format-upstream).",
	Values: booleans, Example: "false", Default: "true", Scope: ScopeLocation, Risk: RiskLow,
	Parse: func(s *Settings, value string) error {
		on, err := nginx.Bool(value)
		s.Unlogged = err == nil && !on
		return err
	},
}
