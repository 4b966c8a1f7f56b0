package annotations

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// The annotations that rewrite redirects in the responses of endpoints.
var (
	proxyRedirectFrom = Annotation{
		Name: "proxy-redirect-from",
		Doc: "Rewrites the URL in the Location and Refresh headers of responses. If the URL starts with the value of " +
			"proxy-redirect-from, this prefix is replaced with the value of proxy-redirect-to.\n\n" +
			"The value may also be `~` followed by a regular expression (RE2), or `~*` followed by a regular " +
			"expression that ignores case. If the expression matches any part of the URL, the whole URL is replaced " +
			"with the value of proxy-redirect-to. The value may contain nginx variables.",
		Values:  "off, default (the same as off), a string, or ~ and a regular expression",
		Example: "http://app.internal:8080/",
		Default: off, Scope: ScopeLocation, Risk: RiskMedium,
		Parse: withVariables(nginx.Into(
			func(s *Settings) *string { return &s.Asked.ProxyRedirect.From }, readProxyRedirectFrom)),
		Check: func(s *Settings) string {
			asked := &s.Asked.ProxyRedirect
			return option.Unless(asked.From == off || asked.To != "" && asked.To != off,
				"the setting has no effect without proxy-redirect-to")
		},
	}
	proxyRedirectTo = Annotation{
		Name: "proxy-redirect-to",
		Doc: "The replacement for the prefix or the URL that proxy-redirect-from matches. It may contain nginx " +
			"variables, and `$1` to `$9` for the groups of the regular expression.",
		Values: "off, or a text", Example: "https://$host/", Default: off, Scope: ScopeLocation, Risk: RiskMedium,
		Parse: withVariables(nginx.Into(
			func(s *Settings) *string { return &s.Asked.ProxyRedirect.To }, readProxyRedirectTo)),
		Check: (*Settings).checkProxyRedirectTo,
	}
)

// proxyRedirect holds the values of proxy-redirect-from and proxy-redirect-to.
type proxyRedirect struct{ From, To string }

func (p *proxyRedirect) isExpression() bool { return strings.HasPrefix(p.From, "~") }

// needsGroups reports whether To refers to capture groups, such as $1, although From is not a regular expression. The
// annotations then have no effect.
func (p *proxyRedirect) needsGroups() bool {
	_, err := exchange.ParseTemplate(p.To)
	return err != nil && !p.isExpression()
}

func (s *Settings) finishProxyRedirect() {
	asked := &s.Asked.ProxyRedirect
	s.Forwarding.Redirect = ir.ResponseRewrite{}
	if asked.From != "" && asked.From != off && asked.To != "" && asked.To != off && !asked.needsGroups() {
		s.Forwarding.Redirect = ir.ResponseRewrite{From: asked.From, To: asked.To}
	}
}

func (s *Settings) checkProxyRedirectTo() string {
	asked := &s.Asked.ProxyRedirect
	switch {
	case asked.To == off:
		return ""
	case asked.From == "" || asked.From == off:
		return "the setting has no effect without proxy-redirect-from"
	case asked.needsGroups():
		return "the setting has no effect, because it refers to groups, and proxy-redirect-from is not a regular " +
			"expression"
	}
	return ""
}

// readProxyRedirectFrom reads the string or regular expression to replace. It returns "off" for the value "default". In
// nginx, "default" stands for the URL under which nginx connects to the endpoints. Endpoints do not know this URL, so
// they never redirect to it.
func readProxyRedirectFrom(value string) (string, error) {
	if value == off || value == "default" {
		return off, nil
	}
	if err := checkRedirectText(value); err != nil {
		return "", err
	}
	if expression, ok := strings.CutPrefix(value, "~"); ok {
		_, err := pattern.Size(strings.TrimPrefix(expression, "*"))
		return value, err
	}
	_, err := exchange.ParseTemplate(value)
	return value, err
}

func readProxyRedirectTo(value string) (string, error) {
	if value == off {
		return value, nil
	}
	if err := checkRedirectText(value); err != nil {
		return "", err
	}
	_, err := exchange.ParseTemplate(value, nginx.Groups...)
	return value, err
}

func checkRedirectText(value string) error {
	switch {
	case len(value) > maxPathBytes:
		return tooLong(maxPathBytes)
	case strings.ContainsAny(value, " \t\"'"):
		return fmt.Errorf("%s must not contain a space or a quote", nginx.Quote(value))
	}
	return nil
}
