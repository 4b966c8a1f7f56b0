package annotations

import (
	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// The annotations for copies of requests.
var (
	mirrorTarget = Annotation{
		Name: "mirror-target",
		Doc: "Sends a copy of each request that is let in to this URL, and throws the answer away. The request does " +
			"not wait for its copy, and does not fail because of it. The copy has the method, the body and the " +
			"headers of the request, X-Request-ID, X-Real-IP, X-Forwarded-* and Via, and the query where path and " +
			"query of the URL have no variable in them. In the host, only $host, $http_host, $namespace, " +
			"$ingress_name and $service_name are variables, the first two without the port and for rules with a " +
			"host only. A certificate is not verified. Requests are not copied whose body is longer than a MiB or " +
			"breaks off, and none while too many copies are under way: [metrics](metrics.md) count them. A copy " +
			"takes 10 seconds at most. [Tenants](tenants.md#endpoints) says which addresses are never dialled.",
		Values:  "a URL, in which nginx variables may stand",
		Example: "http://mirror.example.svc.cluster.local$request_uri", Default: "none",
		Scope: ScopeLocation, Risk: RiskHigh,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Mirror.URL }, func(value string) (string, error) {
			_, err := callout.ParseURL(value)
			return value, err
		}),
		Meanwhile: "no request is copied",
	}
	mirrorHost = Annotation{
		Name: "mirror-host", Doc: "The Host header of the copies.",
		Values: "a host, with nginx variables", Example: "$host", Default: "the host of mirror-target",
		Scope: ScopeLocation, Risk: RiskHigh,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Mirror.Host }, readHost), Check: withoutMirror,
	}
	mirrorRequestBody = Annotation{
		Name: "mirror-request-body", Doc: "Whether the copies have the body of the request.",
		Values: onOff, Example: "off", Default: "on", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.Mirror.WithoutBody },
			func(value string) (bool, error) {
				on, err := nginx.OnOff(value)
				return !on, err
			}),
		Check: withoutMirror,
	}
)

func withoutMirror(s *Settings) string {
	return option.Unless(s.Asked.Mirror.URL != "", "this has no effect without mirror-target")
}

// mirror returns the filter that sends copies of requests. It runs after all other filters.
func (s *Settings) mirror(string) []ir.Filter {
	if s.Asked.Mirror.URL == "" {
		return nil
	}
	return []ir.Filter{s.Asked.Mirror}
}
