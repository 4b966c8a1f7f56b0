package annotations

import "github.com/k8singress/k8singress/internal/model/nginx"

// enableRewriteLog is accepted but has no effect. In ingress-nginx, it writes rewrites to the log of the controller,
// which the authors of Ingresses usually cannot read.
var enableRewriteLog = Annotation{
	Name: "enable-rewrite-log", Risk: RiskLow,
	Ignored: "there is no separate log of rewrites. In log-format-upstream, $request_uri is the path before the " +
		"rewrite, and $uri the path after it",
}

var enableAccessLog = Annotation{
	Name:   "enable-access-log",
	Doc:    "Writes the requests for this Ingress to the [access log](configmap.md#log-format-upstream).",
	Values: booleans, Example: "false", Default: "true", Scope: ScopeLocation, Risk: RiskLow,
	Parse: func(s *Settings, value string) error {
		on, err := nginx.Bool(value)
		s.Unlogged = err == nil && !on
		return err
	},
}
