package annotations

import (
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The annotations for the redirect from HTTP to HTTPS.
var (
	sslRedirect = Annotation{
		Name: "ssl-redirect",
		Doc: "Redirects HTTP requests to HTTPS if their host is listed in `spec.tls` of this Ingress, or of another " +
			"Ingress with the same host. For paths that no Ingress defines, the oldest Ingress of the host decides. " +
			"See [TLS](tls.md#redirects).",
		Values: booleans, Example: "false", Default: "true", Scope: ScopeLocation, Risk: RiskLow, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Redirect.Off }, nginx.No),
	}
	forceSSLRedirect = Annotation{
		Name: "force-ssl-redirect",
		Doc: "Redirects HTTP requests to HTTPS on all hosts of the Ingress, even if `spec.tls` does not list the " +
			"hosts, or if ssl-redirect is `false`.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskMedium, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Redirect.Forced }, nginx.Bool),
	}
	preserveTrailingSlash = Annotation{
		Name: "preserve-trailing-slash",
		Doc: "Keeps a slash at the end of the path in the URL of the redirect to HTTPS. With `false`, one slash at " +
			"the end is removed.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskMedium, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Redirect.KeepSlash }, nginx.Bool),
	}
	usePortInRedirects = Annotation{
		Name: "use-port-in-redirects",
		Doc: "Adds the port in the option [`https`](caddyfile.md#https) to the URL of the redirect to HTTPS, unless " +
			"the port is 443. Use this setting if clients connect to this port directly, without a load balancer " +
			"or a Service in front of the controller.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Redirect.WithPort }, nginx.Bool),
	}
)

// Redirect configures the redirect from HTTP to HTTPS.
type Redirect struct {
	// Off disables the redirect for hosts with a certificate. Forced enables it for all hosts and overrides Off.
	Off, Forced bool
	KeepSlash   bool
	// WithPort is true if the Location header includes the port.
	WithPort bool
	// Status is the status code of the redirect; zero means the default. Exempt lists the paths that are not
	// redirected; nil means the default. Both are set in the ConfigMap; no annotation changes them.
	Status int
	Exempt []string
}

// exempt is the default of no-tls-redirect-locations, as in ingress-nginx. Certificate authorities fetch the responses
// to ACME challenges below this path over HTTP.
var exempt = []string{"/.well-known/acme-challenge"}

// redirectStatus is the default of http-redirect-code, as in ingress-nginx.
const redirectStatus = 308

// defaultHTTPSPort is the default port of HTTPS, which redirects omit from the URL.
const defaultHTTPSPort = 443

// RedirectFor returns the redirect to HTTPS for a path, or nil if requests for the path are not redirected. If always
// is false, the redirect applies only to hosts that are served over HTTPS. filters are the filters of the path: if they
// reject all requests, RedirectFor returns nil. port is the port of the HTTPS listener.
func (s *Settings) RedirectFor(path string, filters []ir.Filter, port int) (redirect *ir.HTTPSRedirect, always bool) {
	r := &s.Redirect
	prefixes := r.Exempt
	if prefixes == nil {
		prefixes = exempt
	}
	starts := func(location string) bool { return isBelow(path, location) }
	if ir.RejectAll(filters) || s.redirects(path) != nil || r.Off && !r.Forced ||
		slices.ContainsFunc(prefixes, starts) {
		return nil, false
	}
	redirect = &ir.HTTPSRedirect{Status: r.Status, KeepSlash: r.KeepSlash}
	if redirect.Status == 0 {
		redirect.Status = redirectStatus
	}
	if r.WithPort && port != defaultHTTPSPort {
		redirect.Port = port
	}
	return redirect, r.Forced
}
