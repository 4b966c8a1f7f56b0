package annotations

import (
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
)

// The rows of the redirect from HTTP to HTTPS.
var (
	sslRedirect = Annotation{
		Name: "ssl-redirect",
		Doc: "Redirects HTTP to HTTPS on hosts that the Ingress, or another one with the same host, has an entry of `tls` for. " +
			"[TLS](tls.md#redirects) has the details.",
		Values: booleans, Example: "false", Default: "true", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Redirect.Off }, nginx.No),
	}
	forceSSLRedirect = Annotation{
		Name:   "force-ssl-redirect",
		Doc:    "Redirects HTTP to HTTPS on hosts without an entry of `tls`, too, and whatever ssl-redirect says.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Redirect.Forced }, nginx.Bool),
	}
	preserveTrailingSlash = Annotation{
		Name:   "preserve-trailing-slash",
		Doc:    "Keeps the slash at the end of the URL that the redirect to HTTPS leads to. Otherwise one is taken off.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Redirect.KeepSlash }, nginx.Bool),
	}
	usePortInRedirects = Annotation{
		Name: "use-port-in-redirects",
		Doc: "Puts the port that the option [`https`](caddyfile.md#https) listens on into the redirect to HTTPS, unless it is 443. " +
			"It is for clients who reach this port itself, and not one of a load balancer or a Service in front.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Redirect.WithPort }, nginx.Bool),
	}
)

// Redirect is the way from HTTP to HTTPS.
type Redirect struct {
	// Off is for hosts with a certificate, Forced for all.
	Off, Forced bool
	KeepSlash   bool
	// WithPort asks for Port in the Location.
	WithPort bool
	// Status is zero for the default. Exempt are prefixes of paths that are not redirected; nil is the default. Both are for
	// defaults: an Ingress cannot say them.
	Status int
	Exempt []string
}

// exempt is ingress-nginx's no-tls-redirect-locations: where an ACME issuer asks, by HTTP.
var exempt = []string{"/.well-known/acme-challenge"}

// redirectStatus is ingress-nginx's http-redirect-code.
const redirectStatus = 308

// defaultHTTPSPort is the port that needs no word.
const defaultHTTPSPort = 443

// RedirectFor returns the redirect of a path, or nil. The port is that of our HTTPS. The redirect is for hosts with a
// certificate, unless always is true. A closed path refuses every request, and redirects none.
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
