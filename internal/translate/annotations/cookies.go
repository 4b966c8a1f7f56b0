package annotations

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

const twoTexts = "off, or two strings separated by a space; the first string may be ~ and a regular expression"

// The annotations that rewrite attributes of the cookies in responses of endpoints.
var (
	proxyCookiePath = Annotation{
		Name: "proxy-cookie-path",
		Doc: "Rewrites the Path attribute of cookies that endpoints set. The value is `OLD NEW`. If the Path starts " +
			"with OLD, this prefix is replaced with NEW. OLD and NEW may contain nginx variables.\n\n" +
			"OLD may also be `~` followed by a regular expression (RE2), or `~*` followed by a regular expression " +
			"that ignores case. If the expression matches any part of the Path, the whole Path is replaced with NEW, " +
			"in which `$1` to `$9` stand for the groups of the expression.\n\n" +
			"The value `OLD \"NEW; Secure; HttpOnly; SameSite=None\"`, or with fewer attributes, also adds these " +
			"attributes to cookies whose Path matches.",
		Values: twoTexts, Example: "/app/ /", Default: "off", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: withVariables(nginx.Into(
			func(s *Settings) *ir.ResponseRewrite { return &s.Forwarding.CookiePath }, readPathRewrite)),
	}
	proxyCookieDomain = Annotation{
		Name: "proxy-cookie-domain",
		Doc: "Rewrites the Domain attribute of cookies that endpoints set. The value is `OLD NEW`. A Domain that " +
			"equals OLD is replaced with NEW; case and a leading dot are ignored. OLD may also be a regular " +
			"expression, and variables are allowed, as in [proxy-cookie-path](annotations.md#proxy-cookie-path).",
		Values: twoTexts, Example: "localhost example.com", Default: "off", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: withVariables(nginx.Into(func(s *Settings) *ir.ResponseRewrite { return &s.Forwarding.CookieDomain },
			readCookieRewrite)),
	}
)

// readPathRewrite reads a value of proxy-cookie-path, in which attributes may follow the new path, as in
// OLD "NEW; ATTRIBUTES".
func readPathRewrite(value string) (ir.ResponseRewrite, error) {
	before, quoted, found := strings.Cut(value, ` "`)
	path, attributes, _ := strings.Cut(strings.TrimSuffix(quoted, `"`), ";")
	if !found || !strings.HasSuffix(quoted, `"`) {
		return readCookieRewrite(value)
	}
	rewrite, err := readCookieRewrite(before + " " + strings.TrimSpace(path))
	if err == nil {
		rewrite.Attributes, err = exchange.CookieAttributes(attributes)
	}
	return rewrite, err
}

func readCookieRewrite(value string) (ir.ResponseRewrite, error) {
	texts := strings.Fields(value)
	switch {
	case value == off:
		return ir.ResponseRewrite{}, nil
	case len(value) > maxPathBytes:
		return ir.ResponseRewrite{}, tooLong(maxPathBytes)
	case strings.ContainsAny(value, ";\"'"):
		return ir.ResponseRewrite{}, fmt.Errorf(
			"%s contains a semicolon or a quote: write two strings without them", nginx.Quote(value))
	case len(texts) != 2:
		return ir.ResponseRewrite{}, fmt.Errorf("%s is neither \"off\" nor two strings separated by a space",
			nginx.Quote(value))
	}
	rewrite := ir.ResponseRewrite{From: texts[0], To: texts[1]}
	var groups []string
	if expression, ok := strings.CutPrefix(rewrite.From, "~"); ok {
		if _, err := pattern.Size(strings.TrimPrefix(expression, "*")); err != nil {
			return ir.ResponseRewrite{}, err
		}
		groups = nginx.Groups
	} else if _, err := exchange.ParseTemplate(rewrite.From); err != nil {
		return ir.ResponseRewrite{}, err
	}
	_, err := exchange.ParseTemplate(rewrite.To, groups...)
	return rewrite, err
}
