package annotations

import (
	"fmt"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// snippetSettings holds what snippets of nginx configuration and the web application firewall ModSecurity request.
// Neither is supported yet, so these settings decide which requests have to be rejected.
type snippetSettings struct {
	// WithoutEffect marks the rows, by their snippetRow, whose text is set and has no effect.
	WithoutEffect [snippetRows]bool
	// Firewall and CoreRules turn ModSecurity on. Blocks is true if the ConfigMap's rules reject requests instead of
	// only detecting them.
	Firewall, CoreRules, Blocks bool
	// GlobalAuth is true if global-auth-snippet may reject requests.
	GlobalAuth bool
}

// snippetRow is the index of a row in snippetSettings.WithoutEffect.
type snippetRow int

const (
	rowConfiguration snippetRow = iota
	rowServer
	rowAuth
	rowModSecurity
	rowHTTP
	rowServers
	rowLocations
	rowGlobalAuth
	snippetRows
)

const (
	snippetDoc = " Snippets have no effect here, but they are checked. If a snippet contains only directives for " +
		"response headers, timeouts, buffers, compression and logs, or `proxy_set_header` of Upgrade, Connection, " +
		"Host, X-Real-IP and X-Forwarded-*, requests are served without it, with a warning. Any other snippet might " +
		"reject requests, so all requests get 503; [the option snippets](caddyfile.md#snippets) changes that."
	configuration = "nginx configuration; `false` means no snippet"
	noSnippet     = "snippets are not supported yet, and this one has no effect"
	ignoring      = "; the administrator's option \"snippets ignore\" serves requests without it"
)

// snippet returns the row for a snippet. judge returns an error if the text may reject requests.
func snippet(name, doc string, row snippetRow, judge func(string) error) Annotation {
	mark := func(s *Settings) *bool { return &s.Asked.Snippets.WithoutEffect[row] }
	return Annotation{
		Name: name, Doc: doc, Values: configuration, Example: "false", Default: "none",
		Scope: ScopeLocation, Risk: RiskCritical, Lines: true,
		Parse: func(s *Settings, value string) error {
			if value == "false" {
				return nil
			}
			if err := judge(value); err != nil && !s.IgnoreSnippets {
				return nginx.Unsupported(err.Error() + ignoring)
			}
			*mark(s) = true
			return nil
		},
		OnError: (*Settings).close, Meanwhile: ingressClosed,
		Check: func(s *Settings) string {
			if *mark(s) {
				return noSnippet
			}
			return ""
		},
	}
}

// The annotations for snippets and ModSecurity.
var (
	configurationSnippet = snippet("configuration-snippet",
		"nginx configuration for the paths of the Ingress."+snippetDoc, rowConfiguration, snippets.Harmless)
	serverSnippet = snippet("server-snippet",
		"nginx configuration for the hosts of the Ingress. If it might reject requests, only the paths of this "+
			"Ingress get 503."+snippetDoc,
		rowServer, snippets.Harmless)
	authSnippet = snippet("auth-snippet",
		"nginx configuration for the requests to auth-url."+snippetDoc, rowAuth, snippets.Harmless)
	modSecuritySnippet = snippet("modsecurity-snippet",
		"ModSecurity rules. They have no effect. With `SecRuleEngine DetectionOnly`, requests are served without "+
			"them, with a warning. Otherwise all requests get 503.", rowModSecurity, snippets.DetectsOnly)
	enableModSecurity = firewall("enable-modsecurity", func(s *Settings) *bool { return &s.Asked.Snippets.Firewall })
	enableCoreRules   = firewall("enable-owasp-core-rules",
		func(s *Settings) *bool { return &s.Asked.Snippets.CoreRules })
)

// The snippets that are keys of the ConfigMap, and are not in Table.
var (
	HTTPSnippet      = ofAll("http-snippet", "all hosts", rowHTTP)
	ServersSnippet   = ofAll("server-snippet", "each host", rowServers)
	LocationsSnippet = ofAll("location-snippet", "each path", rowLocations)
)

// ofAll returns the row for a snippet in the ConfigMap.
func ofAll(name, where string, row snippetRow) Annotation {
	of := snippet(name, "nginx configuration for "+where+"."+snippetDoc, row, snippets.Harmless)
	of.Meanwhile = "all requests for the Ingresses to which the ConfigMap applies get 503"
	return of
}

// GlobalAuthSnippet is a key of the ConfigMap. A text that may reject requests makes the requests that global-auth-url
// is for return 503.
var GlobalAuthSnippet = func() Annotation {
	row := snippet("global-auth-snippet", "nginx configuration for the requests to global-auth-url."+snippetDoc,
		rowGlobalAuth, snippets.Harmless)
	row.OnError = func(s *Settings) { s.Asked.Snippets.GlobalAuth = true }
	row.Meanwhile = "all requests to which global-auth-url applies get 503"
	return row
}()

// FirewallRules is the row for the key modsecurity-snippet in the ConfigMap. Its rules apply where ModSecurity is on.
var FirewallRules = Annotation{
	Name: "modsecurity-snippet",
	Doc: "ModSecurity rules for all Ingresses. They have no effect. With `SecRuleEngine On`, they would reject " +
		"requests in ingress-nginx, so all requests get 503 for Ingresses with " +
		"[enable-modsecurity](annotations.md#enable-modsecurity) or " +
		"[enable-owasp-core-rules](annotations.md#enable-owasp-core-rules), whether an annotation or the ConfigMap " +
		"sets it.",
	Values: "ModSecurity rules; `false` means no rules", Example: "false", Default: "none", Lines: true,
	Parse: func(s *Settings, value string) error {
		asked := &s.Asked.Snippets
		asked.Blocks = snippets.EngineOn(value)
		asked.WithoutEffect[rowModSecurity] = !asked.Blocks && value != "false"
		return s.firewallBlocks(asked.Firewall || asked.CoreRules)
	},
	Check: func(s *Settings) string {
		switch asked := &s.Asked.Snippets; {
		case asked.Blocks:
			return "ModSecurity is not supported: all requests for Ingresses with enable-modsecurity or " +
				"enable-owasp-core-rules get 503" + ignoring
		case asked.WithoutEffect[rowModSecurity]:
			return noSnippet
		}
		return ""
	},
}

// firewall returns the row for an annotation that turns ModSecurity on. By default ModSecurity only detects, so its
// absence lets no additional requests in.
func firewall(name string, of func(*Settings) *bool) Annotation {
	return Annotation{
		Name: name,
		Doc: "ModSecurity is not supported yet. By default it only detects attacks, so this has no effect and " +
			"gets a warning. If the [ConfigMap](configmap.md#modsecurity-snippet) contains `SecRuleEngine On`, all " +
			"requests for the Ingress get 503.",
		Values: booleans, Example: "false", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: func(s *Settings, value string) error {
			on, err := nginx.Bool(value)
			if err != nil {
				return err
			}
			*of(s) = on
			return s.firewallBlocks(on)
		},
		Check: func(s *Settings) string {
			if *of(s) {
				return "ModSecurity is not supported yet, and this has no effect"
			}
			return ""
		},
	}
}

// firewallBlocks returns an error if the firewall is on and would reject requests that are served without it.
func (s *Settings) firewallBlocks(on bool) error {
	if !on || !s.Asked.Snippets.Blocks || s.IgnoreSnippets {
		return nil
	}
	return nginx.Unsupported(fmt.Sprintf(
		"ModSecurity is not supported, and \"SecRuleEngine On\" in the ConfigMap's modsecurity-snippet would reject "+
			"requests: all requests to which it applies get 503. Turn ModSecurity off, or set SecRuleEngine "+
			"DetectionOnly%s", ignoring))
}

// finishFirewall makes all requests for an Ingress get 503 if the firewall would reject some of them. It runs only for
// Ingresses, because the settings of the ConfigMap are defaults for them.
func (s *Settings) finishFirewall() {
	asked := &s.Asked.Snippets
	s.Closed = s.Closed || s.firewallBlocks(asked.Firewall || asked.CoreRules) != nil
}
