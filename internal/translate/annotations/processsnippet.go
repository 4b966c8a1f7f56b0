package annotations

import (
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// The rows for snippets that configure nginx outside of HTTP. They are never applied, and close no Ingress: warnings
// say for each line what replaces it.
var (
	streamSnippet = func() Annotation {
		row := ignoredSnippetRow("stream-snippet", "nginx configuration for TCP and UDP ports. It is never "+
			"applied: the Ingress is served without it, and the warning for each server contains the entries of [the "+
			"ConfigMaps for ports](tcp-udp.md) that replace it."+gateDoc, streamText,
			func(text string) []report.Problem { return problemsOf(snippets.Stream(text, false), false) })
		row.Scope, row.Risk = ScopeIngress, RiskCritical
		row.Example = "server { listen 6379; proxy_pass redis.shop.svc:6379; }"
		return row
	}()
	// StreamSnippet is the ConfigMap key stream-snippet.
	StreamSnippet = ignoredSnippetRow("stream-snippet", "nginx configuration for TCP and UDP ports. It is never "+
		"applied: the warning for each server contains the entries of [the ConfigMaps for ports](tcp-udp.md) that "+
		"replace it.", streamText,
		func(text string) []report.Problem { return problemsOf(snippets.Stream(text, true), true) })
	// MainSnippet is the ConfigMap key main-snippet.
	MainSnippet = ignoredSnippetRow("main-snippet", "nginx configuration for the process, such as `worker_processes`, "+
		"`env` and `load_module`. It is never applied: the warning for each line says why, or names the setting that "+
		"replaces it.", func(s *Settings) *string { return &s.Asked.Snippets.Main },
		func(text string) []report.Problem { return problemsOf(snippets.Main(text), true) })
)

func streamText(s *Settings) *string { return &s.Asked.Snippets.Stream }

// ignoredSnippetRow returns a row for a snippet that is never applied. text returns the field for its text, and read
// returns the problems of a text. Errors in the text are warnings, because they close no Ingress.
func ignoredSnippetRow(
	name, doc string, text func(*Settings) *string, read func(string) []report.Problem,
) Annotation {
	return Annotation{
		Name: name, Doc: doc, Values: configuration, Example: "false", Default: "none", Lines: true,
		Parse: nginx.Into(text, asItIs),
		Report: func(s *Settings) []report.Problem {
			if requestsNothing(*text(s)) {
				return nil
			}
			all := read(*text(s))
			for i := range all {
				if all[i].Severity == report.Error {
					all[i].Severity = report.Warning
				}
			}
			return all
		},
	}
}
