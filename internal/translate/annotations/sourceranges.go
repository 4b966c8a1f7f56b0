package annotations

import (
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

const (
	sourceRangeValues = "networks and addresses, separated by commas or line breaks"
	sourceRangeDoc    = "With the ConfigMap keys use-forwarded-headers, enable-real-ip or use-proxy-protocol, the " +
		"client's address is the address that a trusted proxy sends in a header. If an entry is not a valid network, " +
		"all requests get 503."
)

// The annotations for allowed and denied client addresses. whitelist-source-range is ingress-nginx's older name for
// allowlist-source-range.
var (
	allowlistSourceRange = Annotation{
		Name: "allowlist-source-range",
		Doc: "The networks whose clients are allowed. Clients with other addresses get 403. The list of an Ingress " +
			"replaces the list in the ConfigMap. " + sourceRangeDoc,
		Values: sourceRangeValues, Example: "10.0.0.0/8,2001:db8::/32", Default: "all networks", Scope: ScopeLocation,
		Risk:    RiskMedium,
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Asked.Sources.Allowed }, nginx.AllNetworks),
		OnError: (*Settings).close, Meanwhile: ingressClosed, Lines: true,
	}
	whitelistSourceRange = Annotation{
		Name: "whitelist-source-range",
		Doc: "The older name of [allowlist-source-range](annotations.md#allowlist-source-range). If an Ingress " +
			"has both, allowlist-source-range is used.",
		Values: sourceRangeValues, Example: "10.0.0.0/8", Default: "all networks", Scope: ScopeLocation,
		Risk:    RiskMedium,
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Asked.Sources.Listed }, nginx.AllNetworks),
		OnError: (*Settings).close, Meanwhile: ingressClosed, Lines: true,
	}
	denylistSourceRange = Annotation{
		Name: "denylist-source-range",
		Doc: "The networks whose clients get 403, even if allowlist-source-range contains their addresses. The list " +
			"of an Ingress replaces the list in the ConfigMap. " + sourceRangeDoc,
		Values: sourceRangeValues, Example: "192.0.2.0/24", Default: "none", Scope: ScopeLocation, Risk: RiskMedium,
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.SourceRanges.Deny }, nginx.AllNetworks),
		OnError: (*Settings).close, Meanwhile: ingressClosed, Lines: true,
	}
)

// sources holds the networks in allowlist-source-range (Allowed) and in whitelist-source-range (Listed).
type sources struct{ Allowed, Listed []string }

// allowedSources returns the networks whose clients are allowed, or nil if neither annotation is set.
// allowlist-source-range takes precedence.
func (s *Settings) allowedSources() []string {
	if s.Asked.Sources.Allowed != nil {
		return s.Asked.Sources.Allowed
	}
	return s.Asked.Sources.Listed
}

func (s *Settings) finishSourceRanges() {
	allow := s.allowedSources()
	if s.SourceRanges.Allow = allow; hasAll(allow) {
		s.SourceRanges.Allow = nil
	}
}

func (s *Settings) sourceRanges(string) []ir.Filter {
	if rules := s.snippetRules(false); rules != nil && rules.Rules != nil {
		return []ir.Filter{*rules}
	}
	if s.SourceRanges.Allow == nil && s.SourceRanges.Deny == nil {
		return nil
	}
	return []ir.Filter{s.SourceRanges}
}

// hasAll reports whether networks contains all IPv4 and IPv6 addresses. cert-manager writes such a list into the
// Ingresses that solve its ACME challenges.
func hasAll(networks []string) bool {
	return slices.Contains(networks, "0.0.0.0/0") && slices.Contains(networks, "::/0")
}
