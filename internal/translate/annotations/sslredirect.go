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
		Doc: "Redirects HTTP to HTTPS on hosts that an entry of `tls` lists, in this Ingress or in another one " +
			"with the same host. See [TLS](tls.md#redirects).",
		Values: booleans, Example: "false", Default: "true", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Redirect.Off }, nginx.No),
	}
	forceSSLRedirect = Annotation{
		Name:   "force-ssl-redirect",
		Doc:    "Redirects HTTP to HTTPS on all hosts, even without an entry of `tls` and with ssl-redirect `false`.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Redirect.Forced }, nginx.Bool),
	}
	preserveTrailingSlash = Annotation{
		Name: "preserve-trailing-slash",
		Doc: "Keeps the trailing slash of the URL in the redirect to HTTPS. Otherwise the redirect removes one " +
			"trailing slash.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Redirect.KeepSlash }, nginx.Bool),
	}
	usePortInRedirects = Annotation{
		Name: "use-port-in-redirects",
		Doc: "Adds the port of the option [`https`](caddyfile.md#https) to the redirect to HTTPS, unless it is " +
			"443. Use it if clients connect to this port directly, without a load balancer or a Service in front.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Redirect.WithPort }, nginx.Bool),
	}
)

// Redirect holds the settings of the redirect from HTTP to HTTPS.
type Redirect struct {
	// Off turns the redirect off for hosts with a certificate. Forced turns it on for all hosts, whatever Off is.
	Off, Forced bool
	KeepSlash   bool
	// WithPort adds the port to the Location header.
	WithPort bool
	// Status is the status code of the redirect. Zero is the default. Exempt are the paths that are not redirected. Nil
	// is the default. Only the defaults set the two; an Ingress cannot.
	Status int
	Exempt []string
}

// exempt is the default of no-tls-redirect-locations in ingress-nginx: the path at which ACME issuers fetch the
// responses to their challenges over HTTP.
var exempt = []string{"/.well-known/acme-challenge"}

// redirectStatus is the default of http-redirect-code in ingress-nginx.
const redirectStatus = 308

// defaultHTTPSPort is the port that URLs omit.
const defaultHTTPSPort = 443

// RedirectFor returns the redirect of a path to HTTPS, or nil. port is the port of our HTTPS listener. The redirect
// applies to hosts that are meant for HTTPS, or to all hosts if always is true. A path of a closed Ingress has no
// redirect, because it rejects every request.
func (s *Settings) RedirectFor(path string, port int) (redirect *ir.HTTPSRedirect, always bool) {
	r := &s.Redirect
	prefixes := r.Exempt
	if prefixes == nil {
		prefixes = exempt
	}
	starts := func(location string) bool { return isBelow(path, location) }
	if s.Closed || s.redirects(path) != nil || r.Off && !r.Forced || slices.ContainsFunc(prefixes, starts) {
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
