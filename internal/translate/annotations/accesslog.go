package annotations

import "github.com/k8singress/k8singress/internal/model/nginx"

// enableRewriteLog has no effect, because the authors of Ingresses cannot read such a log.
var enableRewriteLog = Annotation{
	Name: "enable-rewrite-log", Risk: RiskLow,
	Ignored: "rewrites have no log of their own. In log-format-upstream, $request_uri is the path before the " +
		"rewrite, and $uri the path after it",
}

var enableAccessLog = Annotation{
	Name:   "enable-access-log",
	Doc:    "Logs the requests of this Ingress to the [access log](configmap.md#log-format-upstream).",
	Values: booleans, Example: "false", Default: "true", Scope: ScopeLocation, Risk: RiskLow,
	Parse: func(s *Settings, value string) error {
		on, err := nginx.Bool(value)
		s.Unlogged = err == nil && !on
		return err
	},
}
