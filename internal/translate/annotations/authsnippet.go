package annotations

import (
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// authSnippets holds a snippet for the requests to an authentication service.
type authSnippets struct {
	// Read is the meaning of the snippet. It is nil if there is no snippet. Timeouts are the time limits in it; zero
	// means that it does not contain the limit.
	Read     *snippets.Result
	Timeouts ir.Attempts
	// Refused is true if the snippet is invalid, or contains directives that may keep clients out and are not
	// supported. Ignored is true if the administrator has set the option that ignores snippets.
	Refused, Ignored bool
}

// authSnippet configures the requests to auth-url. GlobalAuthSnippet derives the ConfigMap key from it.
var authSnippet = Annotation{
	Name: "auth-snippet",
	Doc: "nginx configuration for the requests to auth-url. " +
		"[Snippets](snippets.md#requests-to-authentication-services) lists the directives and their effects. If the " +
		"snippet contains a directive that may keep clients out and is not supported, or if it cannot be parsed, all " +
		"requests get 503." + gateDoc,
	Values: configuration, Example: "proxy_set_header X-Forwarded-Host $http_host;", Default: "none",
	Scope: ScopeLocation, Risk: RiskCritical, Lines: true,
	Parse: func(s *Settings, value string) error {
		asked := &s.Asked.Auth.Snippet
		switch {
		case value == "false":
			return nil
		case s.IgnoreSnippets:
			asked.Ignored = true
			return nil
		}
		read := s.HTTP.Auth(value)
		if f := read.Closed(false); f != nil {
			return nginx.Unsupported(f.String())
		}
		asked.Read = read
		return asked.readTimeouts()
	},
	OnError: authFailed, Meanwhile: ingressClosed,
	Check: func(s *Settings) string {
		switch asked := &s.Asked.Auth.Snippet; {
		case asked.Ignored:
			return ignoredSnippet
		case asked.Read == nil:
			return ""
		}
		return withoutAuth(s)
	},
	Report: func(s *Settings) []report.Problem {
		if read := s.Asked.Auth.Snippet.Read; read != nil {
			return problemsOf(read.Findings, false)
		}
		return nil
	},
}

// readTimeouts reads the directives in the snippet that have the effect of an annotation, which are time limits.
func (a *authSnippets) readTimeouts() error {
	limits := Settings{}
	for _, v := range a.Read.Values {
		for _, row := range []*Annotation{&proxyConnectTimeout, &proxyReadTimeout, &proxySendTimeout} {
			if row.Name != v.Annotation {
				continue
			}
			if err := row.Parse(&limits, v.Text); err != nil {
				return err
			}
		}
	}
	a.Timeouts = limits.Attempts
	return nil
}

// GlobalAuthSnippet is the ConfigMap key global-auth-snippet. If it is refused, all requests that need authentication
// by global-auth-url get 503.
var GlobalAuthSnippet = func() Annotation {
	row := *GlobalAuth(authSnippet.Name)
	row.OnError = func(s *Settings) { s.Asked.GlobalAuth.Snippet.Refused = true }
	row.Meanwhile = "all requests to which global-auth-url applies get 503"
	return row
}()
