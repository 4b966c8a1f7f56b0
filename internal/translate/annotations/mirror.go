package annotations

import (
	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// The annotations for mirroring: sending a copy of each request to a second server.
var (
	mirrorTarget = Annotation{
		Name: "mirror-target",
		Doc: "Sends a copy of each request to this URL, and discards the response. Requests that are rejected by " +
			"access control are not copied. The request does not wait for its copy, and does not fail if the copy " +
			"fails. The copy has the method, body and headers of the request, plus X-Request-ID, X-Real-IP, " +
			"X-Forwarded-* and CDN-Loop.\n\n" +
			"The query of the request is added to the URL, unless the path or query of the URL contains a variable. " +
			"The host of the URL may contain only the variables $host, $http_host, $namespace, $ingress_name and " +
			"$service_name. In the host, $host and $http_host do not contain a port, and can be used only if the " +
			"rule of the Ingress has a host. Certificates are not verified. [Tenants](tenants.md#endpoints) lists " +
			"the addresses to which the controller never connects.\n\n" +
			"A request is not copied if its body is longer than 1 MiB or is cut off, or if too many copies are in " +
			"progress: [metrics](metrics.md) count these requests. A copy takes at most 10 seconds.",
		Values:  "a URL that may contain nginx variables",
		Example: "http://mirror.example.svc.cluster.local$request_uri", Default: "none",
		Scope: ScopeLocation, Risk: RiskHigh,
		Parse:     withVariables(nginx.Into(func(s *Settings) *string { return &s.Asked.Mirror.URL }, readMirrorURL)),
		Meanwhile: "no request is copied",
	}
	mirrorHost = Annotation{
		Name: "mirror-host", Doc: "The Host header of the copies that are sent to mirror-target.",
		Values: "a host that may contain nginx variables", Example: "$host", Default: "the host of mirror-target",
		Scope: ScopeLocation, Risk: RiskHigh,
		Parse: withVariables(nginx.Into(func(s *Settings) *string { return &s.Asked.Mirror.Host }, readHost)),
		Check: withoutMirror,
	}
	mirrorRequestBody = Annotation{
		Name: "mirror-request-body", Doc: "Includes the request body in the copies that are sent to mirror-target.",
		Values: onOff, Example: "off", Default: "on", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.Mirror.WithoutBody },
			func(value string) (bool, error) {
				on, err := nginx.OnOff(value)
				return !on, err
			}),
		Check: withoutMirror,
	}
)

// readMirrorURL returns the value if it is a valid URL.
func readMirrorURL(value string) (string, error) {
	_, err := callout.ParseURL(value)
	return value, err
}

func withoutMirror(s *Settings) string {
	return option.Unless(s.Asked.Mirror.URL != "", "the setting has no effect without mirror-target")
}

// mirror returns the filter that sends a copy of each request to the mirror URL. It runs after all other filters.
func (s *Settings) mirror(string) []ir.Filter {
	if s.Asked.Mirror.URL == "" {
		return nil
	}
	return []ir.Filter{s.Asked.Mirror}
}
