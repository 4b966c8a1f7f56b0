package annotations

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// cookieName is the default name of the session cookie. ingress-nginx uses the same default.
const cookieName = "INGRESSCOOKIE"

// The annotations for session affinity: a session cookie makes all requests of a client go to the same endpoint.
var (
	affinity = Annotation{
		Name: "affinity",
		Doc: "Sends all requests of a client to the same endpoint, which a session cookie identifies. Responses for " +
			"the paths of this Ingress set the cookie. affinity takes precedence over upstream-hash-by and " +
			"load-balance.",
		Values: "cookie", Example: "cookie", Default: "no affinity", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.Affinity.On }, readAffinity),
		Check: checkAffinity,
	}
	affinityMode = Annotation{
		Name: "affinity-mode",
		Doc: "What happens when endpoints are added: with `balanced`, some clients move to the new endpoints; " +
			"with `persistent`, clients stay at their endpoint as long as it exists.",
		Values: "balanced or persistent", Example: "persistent", Default: "balanced", Scope: ScopeIngress,
		Risk:  RiskMedium,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.Affinity.Cookie.Persistent }, readAffinityMode),
		Check: checkSticky,
	}
)

// The annotations session-cookie-*, which set the attributes of the session cookie. They have no effect without the
// annotation affinity.
var (
	sessionCookieName = Annotation{
		Name:   "session-cookie-name",
		Doc:    "The name of the session cookie.",
		Values: "a cookie name", Example: "route", Default: cookieName, Scope: ScopeIngress, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Affinity.Cookie.Name }, nginx.Token),
		Check: checkSticky,
	}
	sessionCookiePath = Annotation{
		Name: "session-cookie-path",
		Doc: "The Path attribute of the session cookie. Set it if the paths of the Ingress are regular " +
			"expressions, which browsers cannot match.",
		Values: "a path", Example: "/app", Default: "the path of the Ingress", Scope: ScopeIngress, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Affinity.Cookie.Path }, readCookiePath),
		Check: checkSticky,
	}
	sessionCookieDomain = Annotation{
		Name: "session-cookie-domain",
		Doc: "The Domain attribute of the session cookie. Browsers send the cookie to this domain and its " +
			"subdomains.",
		Values: "a domain", Example: "example.com", Default: "none: browsers send the cookie only to the host itself",
		Scope: ScopeIngress,
		Risk:  RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Affinity.Cookie.Domain },
			nginx.Chars(".-", maxDomainBytes)),
		Check: checkSticky,
	}
	sessionCookieExpires = Annotation{
		Name: "session-cookie-expires",
		Doc: "The number of seconds after which the browser deletes the session cookie, sent in its Expires " +
			"attribute.",
		Values: lifetimes, Example: "172800", Default: "none: the browser deletes the cookie at the end of its session",
		Scope: ScopeIngress,
		Risk:  RiskMedium,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Asked.Affinity.Cookie.Expires }, readLifetime),
		Check: checkSticky,
	}
	sessionCookieMaxAge = Annotation{
		Name: "session-cookie-max-age",
		Doc: "The number of seconds after which the browser deletes the session cookie, sent in its Max-Age " +
			"attribute.",
		Values: lifetimes, Example: "172800", Default: "none: the browser deletes the cookie at the end of its session",
		Scope: ScopeIngress,
		Risk:  RiskMedium,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Asked.Affinity.Cookie.MaxAge }, readLifetime),
		Check: checkSticky,
	}
	sessionCookieSameSite = Annotation{
		Name:   "session-cookie-samesite",
		Doc:    "The SameSite attribute of the session cookie.",
		Values: "None, Lax or Strict", Example: "Lax", Default: "none", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Affinity.Cookie.SameSite },
			nginx.OneOf("None", "Lax", "Strict")),
		Check: checkSticky,
	}
	sessionCookieConditionalSameSiteNone = Annotation{
		Name:   "session-cookie-conditional-samesite-none",
		Doc:    "Omits SameSite=None from the session cookie for old browsers that do not support this value.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.Affinity.Cookie.OmitSameSiteNone }, nginx.Bool),
		Check: checkSticky,
	}
	sessionCookieSecure = Annotation{
		Name: "session-cookie-secure",
		Doc: "Sets the Secure attribute of the session cookie in HTTP responses, too. In HTTPS responses it is " +
			"always set.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.Affinity.Cookie.Secure }, nginx.Bool),
		Check: checkSticky,
	}
	sessionCookieChangeOnFailure = Annotation{
		Name:   "session-cookie-change-on-failure",
		Doc:    "Moves a client to another endpoint permanently if a request to its endpoint fails.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.Affinity.Cookie.ChangeOnFailure }, nginx.Bool),
		Check: checkSticky,
	}
)

const (
	maxDomainBytes = 253
	maxPathBytes   = 1024
	// maxLifetime is the maximum lifetime of a session cookie in seconds, about 68 years. Browsers and ingress-nginx
	// interpret larger numbers differently.
	maxLifetime = 1<<31 - 1
	lifetimes   = "a number of seconds from 1 to 2147483647"
)

func checkSticky(s *Settings) string { return option.Unless(s.Asked.Affinity.On, noAffinity) }

// checkAffinity returns a warning if the Path attribute of the session cookie is a regular expression, because browsers
// then never send the cookie back. This is the case if rewrite-target contains capture groups and session-cookie-path
// is not set. Otherwise checkAffinity returns "".
func checkAffinity(s *Settings) string {
	return option.Unless(s.Asked.Affinity.Cookie.Path != "" || !s.Asked.Affinity.On ||
		!strings.Contains(s.RewriteTarget, "$"),
		"the Path attribute of the session cookie would be a regular expression, for which browsers do not send "+
			"the cookie back: set session-cookie-path")
}

func readAffinity(value string) (bool, error) {
	if value != "cookie" {
		return false, fmt.Errorf("%s is not supported: write cookie", nginx.Quote(value))
	}
	return true, nil
}

func readAffinityMode(value string) (bool, error) {
	mode, err := nginx.OneOf("balanced", "persistent")(value)
	return mode == "persistent", err
}

// readCookiePath reads the Path attribute of the session cookie. It rejects characters that would end the attribute or
// the Set-Cookie header.
func readCookiePath(value string) (string, error) {
	if err := checkPath(value); err != nil {
		return "", err
	}
	if strings.Contains(value, ";") {
		return "", fmt.Errorf("%s contains a semicolon, which would end the Path attribute of the cookie",
			nginx.Quote(value))
	}
	return value, nil
}

// checkPath returns an error unless value starts with a slash, is not too long, and contains only printable ASCII
// characters without spaces.
func checkPath(value string) error {
	switch {
	case !strings.HasPrefix(value, "/"):
		return fmt.Errorf("%s does not start with a slash", nginx.Quote(value))
	case len(value) > maxPathBytes:
		return tooLong(maxPathBytes)
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("%s contains a space or a character that is not ASCII: percent-encode it, such as %%20",
			nginx.Quote(value))
	}
	return nil
}

func tooLong(most int) error { return fmt.Errorf("the value is longer than %d bytes", most) }

// readLifetime parses the lifetime of a session cookie in seconds. For a value of 0 or less, it returns 0 and a
// warning: the cookie then has no Expires or Max-Age attribute. In ingress-nginx, such a value makes the browser delete
// the cookie at once.
func readLifetime(value string) (time.Duration, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil || n > maxLifetime:
		return 0, fmt.Errorf("%s is not %s", nginx.Quote(value), lifetimes)
	case n <= 0:
		return 0,
			nginx.Remark(
				fmt.Sprintf(
					"%d would make the browser delete the cookie at once, so the attribute is omitted: write %s, or "+
						"remove the annotation", n, lifetimes))
	}
	return time.Duration(n) * time.Second, nil
}

// stickiness holds the values of the annotations affinity and session-cookie-*.
type stickiness struct {
	On     bool
	Cookie ir.SessionCookie
}

func (s *Settings) finishAffinity() {
	s.LoadBalancing.SessionCookie = nil
	if s.Asked.Affinity.On {
		cookie := s.Asked.Affinity.Cookie
		cookie.Name = cmp.Or(cookie.Name, cookieName)
		s.LoadBalancing.SessionCookie = &cookie
	}
}
