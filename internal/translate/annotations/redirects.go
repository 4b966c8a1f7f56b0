package annotations

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

const (
	redirectValues = "a URL that starts with http:// or https://"
	redirectDoc    = "The redirect is sent before the redirect to HTTPS and before access control; only client " +
		"certificates are verified earlier. The backend does not get the requests. The path and query of the request " +
		"are not added to the URL."
)

// The annotations that redirect all requests to another URL.
var (
	permanentRedirect = Annotation{
		Name: "permanent-redirect",
		Doc:  "Redirects all requests to this URL with status 301. " + redirectDoc, Values: redirectValues,
		Example: "https://www.example.com/new", Default: "none", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Redirects.Permanent }, readURL),
	}
	permanentRedirectCode = Annotation{
		Name:   "permanent-redirect-code",
		Doc:    "The status code of permanent-redirect.",
		Values: "a number from 300 to 308", Example: "308", Default: "301", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Redirects.PermanentCode }, nginx.Number(300, 308)),
		Check: func(s *Settings) string {
			return option.Unless(s.Asked.Redirects.Permanent != "", "the setting has no effect without "+
				"permanent-redirect")
		},
	}
	temporalRedirect = Annotation{
		Name: "temporal-redirect",
		Doc: "Redirects all requests to this URL with status 302. temporal-redirect takes precedence over " +
			"permanent-redirect. " + redirectDoc,
		Values: redirectValues, Example: "https://www.example.com/soon", Default: "none", Scope: ScopeLocation,
		Risk:  RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Redirects.Temporal }, readURL),
	}
	temporalRedirectCode = Annotation{
		Name:   "temporal-redirect-code",
		Doc:    "The status code of temporal-redirect.",
		Values: "a number from 300 to 307", Example: "307", Default: "302", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Redirects.TemporalCode }, nginx.Number(300, 307)),
		Check: func(s *Settings) string {
			return option.Unless(s.Asked.Redirects.Temporal != "", "the setting has no effect without "+
				"temporal-redirect")
		},
	}
)

// redirects holds the values of permanent-redirect, temporal-redirect and their status codes.
type redirects struct {
	Permanent, Temporal         string
	PermanentCode, TemporalCode int
}

// redirects returns the filter that redirects requests for a path to another URL, or nil if there is no redirect. The
// filter runs before access control.
func (s *Settings) redirects(path string) []ir.Filter {
	r := &s.Asked.Redirects
	switch {
	case r.Temporal != "":
		return []ir.Filter{ir.Redirect{Status: cmp.Or(r.TemporalCode, 302), URL: r.Temporal}}
	case r.Permanent != "":
		return []ir.Filter{ir.Redirect{Status: cmp.Or(r.PermanentCode, 301), URL: r.Permanent}}
	case s.Rewrites(path) && isURL(s.RewriteTarget):
		return []ir.Filter{ir.RewriteRedirect{Target: s.RewriteTarget}}
	}
	return nil
}

// readURL parses a URL and returns it percent-encoded, so that it cannot contain characters that end a header.
func readURL(value string) (string, error) {
	if strings.ContainsAny(value, "${}") {
		return "", fmt.Errorf("%s must not contain a variable or a brace", nginx.Quote(value))
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Opaque != "" {
		return "", fmt.Errorf("%s is not a URL such as https://example.com/page", nginx.Quote(value))
	}
	return u.String(), nil
}
