package annotations

import (
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// HTTPSnippet is the ConfigMap key http-snippet. The variables that it defines exist for all other values, so it must
// be read before them.
var HTTPSnippet = Annotation{
	Name: "http-snippet",
	Doc: "nginx configuration for all hosts. It defines variables with `map`, `geo` and `split_clients`, which all " +
		"values with nginx variables may contain, such as log-format-upstream, the annotation auth-url, and other " +
		"snippets. The page [Snippets](snippets.md#variables-of-http-snippet) describes them. `limit_req_zone` and " +
		"`limit_conn_zone` define [zones for limits](snippets.md#limits-with-zones). Other directives have no " +
		"effect. If the text contains a directive that may keep clients out, or if it cannot be parsed, all " +
		"requests get 503.",
	Values: configuration, Example: "map $http_x_tenant $tenant { default none; ~^[a-z]+$ $http_x_tenant; }",
	Default: "none", Lines: true,
	Parse: func(s *Settings, value string) error {
		switch {
		case value == "false":
			return nil
		case s.IgnoreSnippets:
			s.Asked.Snippets.WithoutEffect[rowHTTP] = true
			return nil
		}
		h := snippets.ReadHTTP(value)
		if f := h.Closed(); f != nil {
			return nginx.Unsupported(f.String() + ignoring)
		}
		s.HTTP = h
		return nil
	},
	OnError: (*Settings).close, Meanwhile: allClosed,
	Check: func(s *Settings) string {
		return option.Unless(!s.Asked.Snippets.WithoutEffect[rowHTTP], ignoredSnippet)
	},
	Report: func(s *Settings) []report.Problem {
		if s.HTTP == nil {
			return nil
		}
		return problemsOf(s.HTTP.Findings, true)
	},
}

// withVariables returns a parser for a value that may contain nginx variables. It checks that the variables exist,
// and then calls parse, which checks the rest of the syntax.
func withVariables(parse func(*Settings, string) error) func(*Settings, string) error {
	return func(s *Settings, value string) error {
		if err := s.HTTP.CheckVariables(value); err != nil {
			return err
		}
		return parse(s, value)
	}
}
