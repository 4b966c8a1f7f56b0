package annotations

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

const twoTexts = "off, or two texts with a space between them, of which the first may be ~ and a regular expression"

// The annotations for cookies that endpoints set.
var (
	proxyCookiePath = Annotation{
		Name: "proxy-cookie-path",
		Doc: "Rewrites the Path of the cookies that endpoints set: a Path that begins with the first text has the " +
			"second one there. If the first text is `~`, or `~*` for any case, and a regular expression of the kind " +
			"RE2, the second text takes the place of each Path that the expression is found in, and `$1` to `$9` " +
			"are its groups. Both texts may have nginx variables in them.",
		Values: twoTexts, Example: "/app/ /", Default: "off", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *ir.AnswerRewrite { return &s.Forwarding.CookiePath }, readCookieRewrite),
	}
	proxyCookieDomain = Annotation{
		Name: "proxy-cookie-domain",
		Doc: "Rewrites the Domain of the cookies that endpoints set, if it is the first text, in any case and with " +
			"or without a dot in front. Expressions and variables are as in proxy-cookie-path.",
		Values: twoTexts, Example: "localhost example.com", Default: "off", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *ir.AnswerRewrite { return &s.Forwarding.CookieDomain }, readCookieRewrite),
	}
)

func readCookieRewrite(value string) (ir.AnswerRewrite, error) {
	texts := strings.Fields(value)
	switch {
	case value == off:
		return ir.AnswerRewrite{}, nil
	case len(value) > mostPathBytes:
		return ir.AnswerRewrite{}, tooLong(mostPathBytes)
	case strings.ContainsAny(value, ";\"'"):
		return ir.AnswerRewrite{}, fmt.Errorf(
			"%s has a semicolon or a quote in it: attributes cannot be added to cookies here", nginx.Quote(value))
	case len(texts) != 2:
		return ir.AnswerRewrite{}, fmt.Errorf("%s is neither off nor two texts with a space between them",
			nginx.Quote(value))
	}
	rewrite := ir.AnswerRewrite{From: texts[0], To: texts[1]}
	var groups []string
	if expression, ok := strings.CutPrefix(rewrite.From, "~"); ok {
		if _, err := pattern.Size(strings.TrimPrefix(expression, "*")); err != nil {
			return ir.AnswerRewrite{}, err
		}
		groups = nginx.Groups
	} else if _, err := nginx.ParseTemplate(rewrite.From); err != nil {
		return ir.AnswerRewrite{}, err
	}
	_, err := nginx.ParseTemplate(rewrite.To, groups...)
	return rewrite, err
}
