package annotations

import (
	"errors"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
)

// useRegex follows ingress-nginx: one path that is a regular expression makes all paths of its host regular expressions.
var useRegex = Annotation{
	Name: "use-regex",
	Doc: "Makes regular expressions of the paths, which match at the beginning of a path, in any case, the longest first. The other " +
		"paths that the namespace has on the same hosts become regular expressions as well, whatever their pathType is.",
	Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
	Parse: nginx.Into(func(s *Settings) *bool { return &s.UseRegex }, nginx.Bool),
}

// rewriteTarget follows ingress-nginx: the whole path is replaced, and the paths of the host become regular expressions.
var rewriteTarget = Annotation{
	Name: "rewrite-target",
	Doc: "Replaces the whole path of a request before the backend sees it. $1 to $9 stand for the groups of the path, which is " +
		"a regular expression then, as are all other paths of the same host. The query stays.",
	Values: "a path", Example: "/$2", Default: "no rewrite", Scope: ScopeIngress, Risk: RiskMedium,
	Parse: parseRewriteTarget, Raw: true,
}

func (s *Settings) rewrite(path string) []ir.Filter {
	if !s.Rewrites(path) {
		return nil
	}
	return []ir.Filter{ir.URLRewrite{Target: s.RewriteTarget}}
}

func parseRewriteTarget(s *Settings, value string) error {
	switch {
	case value == "":
		return errors.New("the value is empty: give a path such as /")
	case strings.HasPrefix(value, "http://"), strings.HasPrefix(value, "https://"), strings.HasPrefix(value, "$scheme"):
		return nginx.Unsupported("a redirect to another URL by rewrite-target is not supported: the path is served as it is")
	case strings.ContainsAny(value, " \t"):
		return errors.New("the value has a space in it: a path has none")
	}
	s.RewriteTarget = value
	return nil
}

// Rewrites says whether requests for a path of the Ingress are rewritten. A target equal to the path changes nothing.
func (s *Settings) Rewrites(path string) bool {
	return s.RewriteTarget != "" && s.RewriteTarget != path
}

// Regex says whether a path of the Ingress makes the paths of its host regular expressions.
func (s *Settings) Regex(path string) bool { return s.UseRegex || s.Rewrites(path) }
