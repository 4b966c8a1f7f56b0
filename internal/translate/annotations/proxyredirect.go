package annotations

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// The annotations for redirects that endpoints send.
var (
	proxyRedirectFrom = Annotation{
		Name: "proxy-redirect-from",
		Doc: "Rewrites the Location and the Refresh of answers: one that begins with this text has " +
			"proxy-redirect-to there. If it is `~`, or `~*` for any case, and a regular expression of the kind RE2, " +
			"proxy-redirect-to takes the place of the whole URL that the expression is found in. It may have nginx " +
			"variables in it.",
		Values:  "off, default, which is the same here, a text, or ~ and a regular expression",
		Example: "http://app.internal:8080/",
		Default: off, Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.ProxyRedirect.From }, readProxyRedirectFrom),
		Check: func(s *Settings) string {
			asked := &s.Asked.ProxyRedirect
			return option.Unless(asked.From == off || asked.To != "" && asked.To != off,
				"this has no effect, because it goes with proxy-redirect-to")
		},
	}
	proxyRedirectTo = Annotation{
		Name: "proxy-redirect-to",
		Doc: "What takes the place of proxy-redirect-from. It may have nginx variables in it, and `$1` to `$9`, " +
			"which are the groups of the expression.",
		Values: "off, or a text", Example: "https://$host/", Default: off, Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.ProxyRedirect.To }, readProxyRedirectTo),
		Check: (*Settings).checkProxyRedirectTo,
	}
)

// proxyRedirect holds the values of the two annotations.
type proxyRedirect struct{ From, To string }

func (p *proxyRedirect) isExpression() bool { return strings.HasPrefix(p.From, "~") }

// needsGroups reports whether To refers to groups although From is not a regular expression.
func (p *proxyRedirect) needsGroups() bool {
	_, err := nginx.ParseTemplate(p.To)
	return err != nil && !p.isExpression()
}

func (s *Settings) finishProxyRedirect() {
	asked := &s.Asked.ProxyRedirect
	s.Forwarding.Redirect = ir.AnswerRewrite{}
	if asked.From != "" && asked.From != off && asked.To != "" && asked.To != off && !asked.needsGroups() {
		s.Forwarding.Redirect = ir.AnswerRewrite(*asked)
	}
}

func (s *Settings) checkProxyRedirectTo() string {
	asked := &s.Asked.ProxyRedirect
	switch {
	case asked.To == off:
		return ""
	case asked.From == "" || asked.From == off:
		return "this has no effect, because it goes with proxy-redirect-from"
	case asked.needsGroups():
		return "this has no effect, because it has groups in it, and proxy-redirect-from is no regular expression"
	}
	return ""
}

// readProxyRedirectFrom reads the text or expression to replace. nginx's value "default" becomes off, because it stands
// for the address of the endpoint in nginx's own configuration, and no endpoint knows that address.
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
	_, err := nginx.ParseTemplate(value)
	return value, err
}

func readProxyRedirectTo(value string) (string, error) {
	if value == off {
		return value, nil
	}
	if err := checkRedirectText(value); err != nil {
		return "", err
	}
	_, err := nginx.ParseTemplate(value, nginx.Groups...)
	return value, err
}

func checkRedirectText(value string) error {
	switch {
	case len(value) > mostPathBytes:
		return tooLong(mostPathBytes)
	case strings.ContainsAny(value, " \t\"'"):
		return fmt.Errorf("%s has a space or a quote in it: it is one text", nginx.Quote(value))
	}
	return nil
}
