package annotations

import (
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// snippetSettings holds the values of the annotations and ConfigMap keys for nginx snippets and for ModSecurity, a web
// application firewall. Neither feature is supported yet. The values decide whether requests must be rejected, because
// a snippet or the firewall might have rejected them.
type snippetSettings struct {
	// WithoutEffect contains one element for each snippet annotation, at the index snippetRow. The element is true if
	// the annotation is set and its snippet is ignored.
	WithoutEffect [snippetRows]bool
	// Firewall is true if enable-modsecurity is set, and CoreRules is true if enable-owasp-core-rules is set. Blocks is
	// true if the rules in the ConfigMap reject requests instead of only detecting attacks.
	Firewall, CoreRules, Blocks bool
	// Location holds the snippets for locations.
	Location locationTexts
	// Server holds the snippets for servers.
	Server serverTexts
	// HTTPInvalid contains findings for values of annotations in http-snippet that have no effect.
	HTTPInvalid []snippets.Finding
	// Main and Stream are the texts of main-snippet and stream-snippet, which are never applied.
	Main, Stream string
}

// snippetRow identifies a snippet annotation. It is the index of the annotation in snippetSettings.WithoutEffect, which
// records the ignored snippets.
type snippetRow int

const (
	rowConfiguration snippetRow = iota
	rowServer
	rowModSecurity
	rowHTTP
	rowServers
	rowLocations
	snippetRows
)

const (
	// gateDoc describes the keys of the ConfigMap that apply to snippet annotations. See Gate.
	gateDoc = "\n\n" +
		"The administrator must allow the annotation, with `Critical` in " +
		"[annotations-risk-level](configmap.md#annotations-risk-level) and `true` in " +
		"[allow-snippet-annotations](configmap.md#allow-snippet-annotations). Without the first, all requests for " +
		"the Ingress get 503; with only the first, the annotation is ignored with a warning."
	configuration = "nginx configuration; `false` means no snippet"
	noRules       = "the rules have no effect, because ModSecurity is not supported yet"
	// ignoredSnippet is the warning for a snippet that has no effect because of the option snippets.
	ignoredSnippet = "the snippet has no effect, because the administrator has set the option \"snippets ignore\""
	// allClosed describes the effect of an invalid snippet in the ConfigMap.
	allClosed = "all requests for the Ingresses to which the ConfigMap applies get 503"
)

// interpretedSnippet returns a row for a snippet that is interpreted. read gets the text, which is empty if there is no
// snippet. It is not called if snippets are ignored.
func interpretedSnippet(row snippetRow, read func(s *Settings, text string) error) Annotation {
	return Annotation{
		Values: configuration, Default: "none", Risk: RiskCritical, Lines: true,
		Parse: func(s *Settings, value string) error {
			switch {
			case value == "false":
				value = ""
			case s.IgnoreSnippets:
				s.Asked.Snippets.WithoutEffect[row] = true
				return nil
			}
			return read(s, value)
		},
		Check: func(s *Settings) string {
			return option.Unless(!s.Asked.Snippets.WithoutEffect[row], ignoredSnippet)
		},
	}
}

// snippet returns an annotation whose value is an nginx snippet. The function judge must return an error if the snippet
// may reject requests.
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
				return nginx.Unsupported(err.Error())
			}
			*mark(s) = true
			return nil
		},
		OnError: (*Settings).close, Meanwhile: ingressClosed,
		Check: func(s *Settings) string {
			if *mark(s) {
				return noRules
			}
			return ""
		},
	}
}

// The annotations for nginx snippets and ModSecurity.
var (
	modSecuritySnippet = snippet("modsecurity-snippet",
		"ModSecurity rules. The rules are not applied, because ModSecurity is not supported yet. Rules with "+
			"`SecRuleEngine DetectionOnly` are ignored with a warning. With any other rules, all requests get "+
			"503."+gateDoc,
		rowModSecurity, snippets.DetectsOnly)
	enableModSecurity = firewall("enable-modsecurity", func(s *Settings) *bool { return &s.Asked.Snippets.Firewall })
	enableCoreRules   = firewall("enable-owasp-core-rules",
		func(s *Settings) *bool { return &s.Asked.Snippets.CoreRules })
)

// FirewallRules is the ConfigMap key modsecurity-snippet. Its rules apply to Ingresses for which ModSecurity is
// enabled.
var FirewallRules = Annotation{
	Name: "modsecurity-snippet",
	Doc: "ModSecurity rules for all Ingresses. The rules are not applied, because ModSecurity is not supported yet. " +
		"Rules with `SecRuleEngine On` would reject requests in ingress-nginx. With such rules, all requests for an " +
		"Ingress get 503 if [enable-modsecurity](annotations.md#enable-modsecurity) or " +
		"[enable-owasp-core-rules](annotations.md#enable-owasp-core-rules) applies to the Ingress, by an annotation " +
		"or by the ConfigMap.",
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
				"enable-owasp-core-rules get 503"
		case asked.WithoutEffect[rowModSecurity]:
			return noRules
		}
		return ""
	},
}

// firewall returns an annotation that enables ModSecurity. By default ModSecurity only detects attacks and rejects no
// requests, so it is safe to ignore the annotation.
func firewall(name string, of func(*Settings) *bool) Annotation {
	return Annotation{
		Name: name,
		Doc: "Turns on ModSecurity, which is not supported yet. Since ModSecurity only detects attacks by default, " +
			"this setting is ignored with a warning. If the key " +
			"[modsecurity-snippet](configmap.md#modsecurity-snippet) of the ConfigMap contains `SecRuleEngine On`, " +
			"ModSecurity would reject requests, so all requests for the Ingress get 503.",
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
				return "the setting has no effect, because ModSecurity is not supported yet"
			}
			return ""
		},
	}
}

// firewallBlocks returns an error if ModSecurity is enabled (on) and would reject requests that this controller
// accepts. It returns nil if the administrator has set the option that ignores snippets.
func (s *Settings) firewallBlocks(on bool) error {
	if !on || !s.Asked.Snippets.Blocks || s.IgnoreSnippets {
		return nil
	}
	return nginx.Unsupported(
		"ModSecurity is not supported, and \"SecRuleEngine On\" in the ConfigMap's modsecurity-snippet would reject " +
			"requests: all requests to which ModSecurity applies get 503. Turn ModSecurity off, or set SecRuleEngine " +
			"DetectionOnly")
}

// finishFirewall makes all requests for an Ingress get 503 if ModSecurity would reject some of them. Do not call it for
// the settings of the ConfigMap, because every Ingress would inherit the result.
func (s *Settings) finishFirewall() {
	asked := &s.Asked.Snippets
	s.Closed = s.Closed || s.firewallBlocks(asked.Firewall || asked.CoreRules) != nil
}
