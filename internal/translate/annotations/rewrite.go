package annotations

import (
	"errors"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// useRegex is the annotation that turns the paths of an Ingress into regular expressions. In ingress-nginx, it affects
// all paths of the host. Here it affects only the paths that the same namespace defines on the host.
var useRegex = Annotation{
	Name: "use-regex",
	Doc: "Turns the paths of the Ingress into regular expressions. The expressions match at the start of a request " +
		"path and ignore case; the longest expression is tried first. The paths of other Ingresses of the namespace " +
		"with the same hosts also become regular expressions, with any pathType.",
	Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
	Parse: nginx.Into(func(s *Settings) *bool { return &s.UseRegex }, nginx.Bool),
}

// rewriteTarget is the annotation that replaces the whole path of a request. As in ingress-nginx, it also has the
// effect of use-regex.
var rewriteTarget = Annotation{
	Name: "rewrite-target",
	Doc: "Replaces the whole path of a request before the request is sent to the backend; the query is kept. The " +
		"path of the Ingress becomes a regular expression, and $1 to $9, or $NAME for `(?<NAME>...)`, stand for its " +
		"groups. The paths of other Ingresses of the namespace with the same hosts also become regular " +
		"expressions.\n\n" +
		"If the value is a URL that starts with `http://`, `https://` or `$scheme`, requests are redirected to this " +
		"URL with 302, before the redirect to HTTPS and before access control. The URL may contain nginx variables.",
	Values: "a path, or a URL", Example: "/$2", Default: "no rewrite", Scope: ScopeIngress, Risk: RiskMedium,
	Parse: parseRewriteTarget, Raw: true,
}

func (s *Settings) rewrite(path string) []ir.Filter {
	if !s.Rewrites(path) || isURL(s.RewriteTarget) {
		return nil
	}
	return []ir.Filter{ir.URLRewrite{Target: s.RewriteTarget}}
}

func parseRewriteTarget(s *Settings, value string) error {
	switch {
	case value == "":
		return errors.New("the value is empty: write a path such as /")
	case strings.ContainsAny(value, " \t"):
		return errors.New("the value contains a space: percent-encode it as %20")
	case nginx.CheckVariables(value) != nil:
		return nginx.CheckVariables(value)
	case isURL(value):
		if err := checkTemplateURL(value); err != nil {
			return err
		}
		if err := s.HTTP.CheckVariables(value, s.PathGroups...); err != nil {
			return err
		}
	}
	s.RewriteTarget = value
	return nil
}

// isURL reports whether a rewrite target causes a redirect to another URL. It uses the same rule as ingress-nginx.
func isURL(target string) bool {
	return strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") ||
		strings.HasPrefix(target, "$scheme")
}

// checkTemplateURL returns an error unless value is a URL with valid nginx variables. It rejects braces outside of
// variables, so that the value cannot contain a Caddy placeholder.
func checkTemplateURL(value string) error {
	_, rest, ok := strings.Cut(value, "://")
	if !ok || rest == "" || strings.HasPrefix(rest, "/") {
		return fmt.Errorf("%s is not a URL such as https://example.com/$1", nginx.Quote(value))
	}
	if strings.Contains(strings.ReplaceAll(value, "${", ""), "{") {
		return fmt.Errorf("%s contains a brace that is not part of a variable", nginx.Quote(value))
	}
	_, err := exchange.ParseTemplate(value, nginx.Groups...)
	return err
}

// Rewrites reports whether requests for a path of the Ingress are rewritten. A rewrite target that equals the path has
// no effect.
func (s *Settings) Rewrites(path string) bool {
	return s.RewriteTarget != "" && s.RewriteTarget != path
}

// Regex reports whether a path of the Ingress causes all paths of its host in the same namespace to be matched as
// regular expressions.
func (s *Settings) Regex(path string) bool { return s.UseRegex || s.Rewrites(path) }
