package annotations

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// The annotations for cross-origin requests.
var (
	enableCORS = Annotation{
		Name: "enable-cors",
		Doc: "Adds CORS headers to responses, including error responses, and replaces the CORS headers of the " +
			"backend. The controller responds to OPTIONS requests from the origins in cors-allow-origin itself, with " +
			"204 and before access control. Requests from other origins are forwarded to the backend, and the " +
			"controller adds no CORS headers to their responses. HTTP requests are redirected to HTTPS first.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.CORS.On }, nginx.Bool),
	}
	corsAllowOrigin = Annotation{
		Name: "cors-allow-origin",
		Doc: "The origins whose scripts may read responses. A `*` as the first label of a host matches any single " +
			"label. `*` alone matches all origins. Invalid entries are ignored; if no entry is valid, the controller " +
			"adds no CORS headers.",
		Values:  "comma-separated origins such as https://*.example.com:8443, `null` or `*`",
		Example: "https://www.example.com",
		Default: "*", Scope: ScopeIngress, Risk: RiskMedium,
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Asked.CORS.Origins }, readOrigins),
		OnError: func(s *Settings) { s.Asked.CORS.NoOrigin = true }, Meanwhile: "no response has CORS headers",
		Lines: true, Check: withoutCORS,
	}
	corsAllowMethods = Annotation{
		Name:   "cors-allow-methods",
		Doc:    "The methods that cross-origin requests may use (Access-Control-Allow-Methods).",
		Values: "comma-separated methods", Example: "GET, POST", Default: usualMethods, Scope: ScopeIngress,
		Risk:  RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.CORS.Methods }, readNames), Check: withoutCORS,
	}
	corsAllowHeaders = Annotation{
		Name:   "cors-allow-headers",
		Doc:    "The request headers that cross-origin requests may contain (Access-Control-Allow-Headers).",
		Values: "comma-separated names", Example: "X-Token, Content-Type", Default: usualHeaders,
		Scope: ScopeIngress, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.CORS.Headers }, readNames), Check: withoutCORS,
	}
	corsExposeHeaders = Annotation{
		Name: "cors-expose-headers", Doc: "The response headers that scripts may read (Access-Control-Expose-Headers).",
		Values: "comma-separated names, or `*`", Example: "X-Total", Default: "none", Scope: ScopeIngress,
		Risk:  RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.CORS.Expose }, readNames), Check: withoutCORS,
	}
	corsAllowCredentials = Annotation{
		Name: "cors-allow-credentials", Doc: "Allows cross-origin requests with cookies and other credentials.",
		Values: booleans, Example: "false", Default: "true", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.CORS.NoCredentials }, nginx.No), Check: withoutCORS,
	}
	corsMaxAge = Annotation{
		Name: "cors-max-age", Doc: "The number of seconds for which browsers may cache the response to an OPTIONS " +
			"request (Access-Control-Max-Age).",
		Values: "a number from -1 to 2147483647", Example: "600", Default: "1728000", Scope: ScopeIngress,
		Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) **int { return &s.Asked.CORS.MaxAge }, func(value string) (*int, error) {
			seconds, err := nginx.Number(-1, 1<<31-1)(value)
			return &seconds, err
		}), Check: withoutCORS,
	}
)

// The default values of the CORS annotations. ingress-nginx uses the same defaults.
const (
	usualMethods = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
	usualHeaders = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type," +
		"Range,Authorization"
	usualMaxAge = 1728000
)

func withoutCORS(s *Settings) string {
	return option.Unless(s.Asked.CORS.On, "the setting has no effect without enable-cors")
}

// cors holds the values of the CORS annotations. NoOrigin is true if cors-allow-origin is invalid.
type cors struct {
	On, NoCredentials        bool
	NoOrigin                 bool
	Origins                  []string
	Methods, Headers, Expose string
	MaxAge                   *int
}

// cors returns the CORS filter. It runs before access control, because browsers send no credentials with CORS preflight
// requests (OPTIONS).
func (s *Settings) cors(string) []ir.Filter {
	asked := &s.Asked.CORS
	if !asked.On || asked.NoOrigin {
		return nil
	}
	f := ir.CORS{
		Origins: asked.Origins, Methods: cmp.Or(asked.Methods, usualMethods),
		Headers: cmp.Or(asked.Headers, usualHeaders),
		Expose:  asked.Expose, Credentials: !asked.NoCredentials, MaxAge: usualMaxAge,
	}
	if f.Origins == nil {
		f.Origins = []string{"*"}
	}
	if asked.MaxAge != nil {
		f.MaxAge = *asked.MaxAge
	}
	return []ir.Filter{f}
}

// The regular expression origin matches a valid entry of the annotation cors-allow-origin.
var origin = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*://(\*\.)?[A-Za-z0-9.-]+(:[0-9]{1,5})?|null|\*)$`)

// readOrigins reads a comma-separated list of origins. Invalid entries are skipped.
func readOrigins(value string) ([]string, error) {
	var all, bad []string
	for _, word := range nginx.List(value) {
		if origin.MatchString(word) {
			all = append(all, strings.ToLower(word))
		} else {
			bad = append(bad, nginx.Quote(word))
		}
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%s contains no origin: write origins such as https://www.example.com",
			nginx.Quote(value))
	case bad != nil:
		return all, nginx.Partial("these values are ignored, because they are not origins such as " +
			"https://www.example.com: " +
			strings.Join(bad, ", "))
	}
	return all, nil
}

const maxNames = 4 << 10

var readNames = nginx.Chars("-_*, ", maxNames)
