package annotations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The annotations for the redirect from "/" to the start page of an application.
var (
	appRoot = Annotation{
		Name: "app-root",
		Doc: "Redirects requests for `/` to this path of the same host, with status 302 and without the query, even " +
			"if the Ingress does not define the path `/`. HTTP requests are redirected to HTTPS first.\n\n" +
			"Since app-root applies to the whole host, only Ingresses in the namespace that [owns the " +
			"host](tenants.md) can set it. If several of these Ingresses have the annotation, the annotation of the " +
			"oldest Ingress applies.",
		Values: "a path", Example: "/app", Default: "none", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.AppRoot }, readRoot),
	}
	relativeRedirects = Annotation{
		Name: "relative-redirects",
		Doc: "Omits the scheme and the host from the Location header of app-root redirects, and of redirects of " +
			"snippets to a path. The Location header of a redirect to another scheme or host always contains both.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.RelativeRedirects }, nginx.Bool),
	}
)

// FiltersOfRoot returns the filters for requests whose path is exactly "/": the filters of all phases before app-root,
// then the redirect. It returns nil if app-root is not set.
func (s *Settings) FiltersOfRoot() []ir.Filter {
	if s.AppRoot == "" {
		return nil
	}
	earlier := phases[:slices.IndexFunc(phases, func(p phase) bool { return p.Name == appRoot.Name })]
	return append(s.filtersOf(earlier, "/"), ir.AppRoot{Path: s.AppRoot, Relative: s.RelativeRedirects})
}

// readRoot reads the target path of app-root. It rejects "/", which would redirect to itself, and paths such as
// "//host" that browsers interpret as another host.
func readRoot(value string) (string, error) {
	switch {
	case !strings.HasPrefix(value, "/"), strings.HasPrefix(value, "//"):
		return "", fmt.Errorf("%s is not a path that starts with exactly one slash, such as /app", nginx.Quote(value))
	case value == "/":
		return "", fmt.Errorf("the path / would redirect to itself: write another path, such as /app")
	}
	return nginx.Chars("/-._~:?&=%#@+,;!()*", maxPathBytes)(value)
}
