package annotations

import "github.com/k8singress/k8singress/internal/nginx"

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
