package annotations

import (
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The annotations that close an Ingress for maintenance.
var (
	maintenance = Annotation{
		Name: OwnPrefix + "maintenance",
		Doc: "With `true`, all requests get 503, except requests of the clients in " +
			"[k8singress.io/maintenance-allowlist](annotations.md#k8singressiomaintenance-allowlist). This includes " +
			"requests for `/` with app-root, OPTIONS requests of CORS, and requests that would be redirected to " +
			"another URL. WebSockets are closed when the maintenance begins. If some clients are allowed, HTTP " +
			"requests are redirected to HTTPS first. Client certificates are always verified first.\n\n" +
			"The response has no CORS headers. To show a page, add 503 to " +
			"[custom-http-errors](annotations.md#custom-http-errors). With ssl-passthrough, the controller " +
			"terminates TLS during the maintenance. A canary has the maintenance of its main Ingress.\n\n" +
			"If the ConfigMap sets `true`, Ingresses with `false` stay open. The Ingresses that cert-manager creates " +
			"for HTTP-01 challenges are closed, too, so it gets no certificates during the maintenance.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse:   nginx.Into(func(s *Settings) *bool { return &s.Asked.Maintenance.On }, nginx.Bool),
		OnError: (*Settings).close, Meanwhile: ingressClosed,
	}
	maintenanceAllowlist = Annotation{
		Name: OwnPrefix + "maintenance-allowlist",
		Doc: "The networks whose clients are served while " +
			"[k8singress.io/maintenance](annotations.md#k8singressiomaintenance) is `true`. The list of an Ingress " +
			"replaces the list in the ConfigMap. The other access control also applies to these clients. With the " +
			"ConfigMap keys use-forwarded-headers, enable-real-ip or use-proxy-protocol, the client's address is the " +
			"address that a trusted proxy sends in a header. If an entry is not a valid network, no client is served " +
			"during a maintenance.",
		Values: sourceRangeValues, Example: "10.0.0.0/8,2001:db8::/32", Default: "none", Scope: ScopeLocation,
		Risk:    RiskLow,
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Asked.Maintenance.Allow }, nginx.AllNetworks),
		OnError: func(s *Settings) { s.Asked.Maintenance.Allow = nil }, Meanwhile: nobodyAllowed, Lines: true,
	}
)

// nobodyAllowed is used in messages about an invalid maintenance-allowlist. It describes the effect. A list without
// maintenance restricts nothing, so it does not close the Ingress.
const nobodyAllowed = "no client is served during a maintenance"

// maintenanceAsked holds the values of the annotations maintenance and maintenance-allowlist.
type maintenanceAsked struct {
	On    bool
	Allow []string
}

// InMaintenance reports whether the Ingress is closed for maintenance.
func (s *Settings) InMaintenance() bool { return s.Asked.Maintenance.On }

// The method maintenance returns the filter that closes the Ingress for maintenance.
func (s *Settings) maintenance(string) []ir.Filter {
	if !s.InMaintenance() {
		return nil
	}
	return []ir.Filter{ir.Maintenance{Allow: s.Asked.Maintenance.Allow}}
}

// rejectsAll reports whether all requests for the Ingress get 503.
func (s *Settings) rejectsAll() bool {
	return s.Closed || s.InMaintenance() && len(s.Asked.Maintenance.Allow) == 0
}
