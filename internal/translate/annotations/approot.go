package annotations

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The annotations for the redirect from "/" to the start page of an application.
var (
	appRoot = Annotation{
		Name: "app-root",
		Doc: "Answers requests for `/` on the hosts of the Ingress with 302 and the way to this path of the same " +
			"host, without the query of the request, and whichever paths the Ingress has. The redirect to HTTPS " +
			"comes first. It holds for the whole host, so that the oldest Ingress of the namespace that [has the " +
			"host](tenants.md) decides.",
		Values: "a path", Example: "/app", Default: "none", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.AppRoot }, readRoot),
	}
	relativeRedirects = Annotation{
		Name: "relative-redirects",
		Doc: "Redirects of app-root name a path alone, and neither a scheme nor a host. Redirects to another " +
			"scheme or host always name both.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.RelativeRedirects }, nginx.Bool),
	}
)

// FiltersOfRoot returns the filters for requests for exactly "/" if app-root is set, and otherwise nil.
func (s *Settings) FiltersOfRoot() []ir.Filter {
	if s.AppRoot == "" {
		return nil
	}
	return append(s.closed("/"), ir.AppRoot{Path: s.AppRoot, Relative: s.RelativeRedirects})
}

// readRoot reads a path. It rejects "/", which would redirect to itself, and paths that browsers read as another host.
func readRoot(value string) (string, error) {
	switch {
	case !strings.HasPrefix(value, "/"), strings.HasPrefix(value, "//"):
		return "", fmt.Errorf("%s is not a path such as /app: it begins with one slash", nginx.Quote(value))
	case value == "/":
		return "", fmt.Errorf("the path / would lead to itself: write another one, such as /app")
	}
	return nginx.Chars("/-._~:?&=%#@+,;!()*", mostPathBytes)(value)
}
