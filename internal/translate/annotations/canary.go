package annotations

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// The annotations of a canary: an Ingress that gets a share of the requests of another Ingress.
var (
	canary = Annotation{
		Name: "canary",
		Doc: "Makes the Ingress a canary: it gets a share of the requests for the main Ingress, which is the Ingress " +
			"with the same host, path and pathType in the same namespace. While the canary has no endpoints, the " +
			"main Ingress gets all requests.\n\n" +
			"A canary uses its own annotations canary-*, load-balance and upstream-hash-by-*, and also affinity and " +
			"session-cookie-* if affinity-canary-behavior is `legacy`. The main Ingress sets all other " +
			"annotations.\n\n" +
			"The first of these that applies to a request selects its backend: the client's session cookie, " +
			"canary-by-header, canary-by-cookie, canary-weight.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeIngress, Risk: RiskLow,
		Parse:     nginx.Into(func(s *Settings) *bool { return &s.Asked.Canary.On }, nginx.Bool),
		OnError:   func(s *Settings) { s.Asked.Canary.On, s.Asked.Canary.Closed = true, true },
		Meanwhile: "the Ingress gets no requests",
		Check:     checkCanary,
	}
	canaryWeight = Annotation{
		Name:   "canary-weight",
		Doc:    "The share of requests that the canary gets: canary-weight divided by canary-weight-total.",
		Values: "a number", Example: "10", Default: "0", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Canary.Weight }, nginx.Number(0, math.MaxInt32)),
		Check: checkCanaryWeight,
	}
	canaryWeightTotal = Annotation{
		Name:   "canary-weight-total",
		Doc:    "The number by which canary-weight is divided. Values below 100 are treated as 100.",
		Values: "a number", Example: "1000", Default: "100", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Canary.Total }, nginx.Number(0, math.MaxInt32)),
		Check: needsCanary,
	}
	canaryByHeader = Annotation{
		Name: "canary-by-header",
		Doc: "The name of a request header. If the value of the header is `always`, the canary gets the request. If " +
			"it is `never`, the main Ingress gets the request.",
		Values: "a header name", Example: "X-Canary", Default: "none", Scope: ScopeIngress, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Canary.Header }, nginx.Token),
		Check: needsCanary,
	}
	canaryByHeaderValue = Annotation{
		Name: "canary-by-header-value",
		Doc: "The canary gets a request if the header in canary-by-header has this value. The values `always` and " +
			"`never` then have no special meaning.",
		Values: "a text", Example: "beta", Default: "none", Scope: ScopeIngress, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Canary.HeaderValue }, asItIs),
		Check: needsCanaryHeader,
	}
	canaryByHeaderPattern = Annotation{
		Name: "canary-by-header-pattern",
		Doc: "A regular expression. If it matches any part of the value of the header in canary-by-header, the " +
			"canary gets the request. If canary-by-header-value is also set, the regular expression has no effect.",
		Values: "a regular expression (RE2)", Example: "^beta-", Default: "none", Scope: ScopeIngress, Risk: RiskMedium,
		Parse:     nginx.Into(func(s *Settings) *string { return &s.Asked.Canary.HeaderPattern }, readPattern),
		OnError:   func(s *Settings) { s.Asked.Canary.BadHeaderPattern = true },
		Meanwhile: "the main Ingress gets the requests with the header",
		Check:     checkCanaryPattern,
	}
	canaryByCookie = Annotation{
		Name: "canary-by-cookie",
		Doc: "The name of a cookie. If the value of the cookie is `always`, the canary gets the request. If it is " +
			"`never`, the main Ingress gets the request.",
		Values: "a cookie name", Example: "canary", Default: "none", Scope: ScopeIngress, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Canary.Cookie }, nginx.Token),
		Check: needsCanary,
	}
	affinityCanaryBehavior = Annotation{
		Name: "affinity-canary-behavior",
		Doc: "The session cookie that a canary uses. With `sticky`, it is the session cookie of the main Ingress. " +
			"With `legacy`, it is the session cookie that the canary's own annotations configure, if any.",
		Values: "sticky or legacy", Example: "legacy", Default: "sticky", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.Canary.OwnAffinity },
			func(value string) (bool, error) {
				word, err := nginx.OneOf("sticky", "legacy")(value)
				return word == "legacy", err
			}),
		Check: needsCanary,
	}
)

// canaryAsked holds the values of the canary annotations. On is the value of the annotation canary.
type canaryAsked struct {
	ir.Canary
	On bool
}

// minTotal is the minimum of canary-weight-total. As in ingress-nginx, smaller values are raised to it.
const minTotal = 100

func (s *Settings) finishCanary() {
	s.Canary = nil
	if !s.Asked.Canary.On {
		return
	}
	c := s.Asked.Canary.Canary
	c.Total = max(c.Total, minTotal)
	s.Canary = &c
}

func asItIs(value string) (string, error) { return value, nil }

// readPattern checks that value is a valid regular expression, and returns it unchanged. The canary gets the requests
// with a header that matches this expression.
func readPattern(value string) (string, error) {
	_, err := pattern.Size(value)
	return value, err
}

func needsCanary(s *Settings) string {
	return option.Unless(s.Canary != nil, "the setting has no effect, because the Ingress is not a canary: set "+
		"canary to true")
}

func needsCanaryHeader(s *Settings) string {
	if message := needsCanary(s); message != "" {
		return message
	}
	return option.Unless(s.Canary.Header != "", "the setting has no effect without canary-by-header")
}

func checkCanary(s *Settings) string {
	c := s.Canary
	return option.Unless(c == nil || c.Closed || c.Weight > 0 || c.Header != "" || c.Cookie != "",
		"the canary gets no requests: set canary-weight, canary-by-header or canary-by-cookie")
}

func checkCanaryWeight(s *Settings) string {
	if message := needsCanary(s); message != "" || s.Canary.Weight <= s.Canary.Total {
		return message
	}
	return fmt.Sprintf("the weight %d is larger than canary-weight-total, which is %d: the canary gets all requests",
		s.Canary.Weight, s.Canary.Total)
}

func checkCanaryPattern(s *Settings) string {
	if message := needsCanaryHeader(s); message != "" {
		return message
	}
	return option.Unless(s.Canary.HeaderValue == "",
		"the setting has no effect, because canary-by-header-value takes precedence")
}

// OfCanary splits the annotations of a canary into two groups. count holds the annotations that take effect, the
// annotations that the administrator does not allow, which close the canary, and unknown annotations, which may be
// misspelled and must be reported. void holds the sorted names of the annotations that are ignored, because the canary
// takes these settings from its main Ingress.
func (s *Settings) OfCanary(all map[string]string) (count map[string]string, void []string) {
	count = map[string]string{}
	for key, value := range all {
		name, ours := nameOf(key)
		var row *Annotation
		if ours {
			row = Table.Find(name)
		}
		decision, _ := s.judge(name, row, value)
		switch {
		case row == nil, decision == refused, slices.ContainsFunc(ofCanary,
			func(prefix string) bool { return strings.HasPrefix(name, prefix) }):
			count[key] = value
		case strings.TrimSpace(value) != "":
			void = append(void, name)
		}
	}
	slices.Sort(void)
	return count, void
}

// ofCanary lists prefixes of annotation names. Annotations with these prefixes take effect on a canary. The canary
// takes all other settings from its main Ingress.
var ofCanary = []string{"canary", "load-balance", "upstream-hash-by", "affinity", "session-cookie-"}
