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
			"another URL by its annotations; only from-to-www-redirect still redirects. Requests that are in " +
			"progress are completed. WebSockets and server-sent events of all clients end after " +
			"[worker-shutdown-timeout](configmap.md#worker-shutdown-timeout). If some clients are allowed, HTTP " +
			"requests are redirected to HTTPS first. Client certificates are verified before the 503.\n\n" +
			"The response has no CORS headers. To show a page, add 503 to " +
			"[custom-http-errors](annotations.md#custom-http-errors). To tell clients when to come back, set " +
			"[k8singress.io/retry-after](annotations.md#k8singressioretry-after). With ssl-passthrough, the " +
			"controller terminates TLS during maintenance, so allowed clients see the certificate of the " +
			"controller, and an endpoint that requires TLS needs backend-protocol. A canary is closed together with " +
			"its main Ingress.\n\n" +
			"If the ConfigMap sets `true`, Ingresses with `false` stay open. The ConfigMap also closes the Ingresses " +
			"that cert-manager creates for HTTP-01 challenges. To keep them open, set the annotation to `false` in " +
			"the ingressTemplate of the solver.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow, Passthrough: true,
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
			"during maintenance.",
		Values: sourceRangeValues, Example: "10.0.0.0/8,2001:db8::/32", Default: "none", Scope: ScopeLocation,
		Risk: RiskLow, Passthrough: true,
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Asked.Maintenance.Allow }, nginx.AllNetworks),
		OnError: func(s *Settings) { s.Asked.Maintenance.Allow = nil }, Meanwhile: noClientAllowed, Lines: true,
	}
)

// noClientAllowed is used in messages about an invalid maintenance-allowlist. It describes the effect. A list without
// maintenance restricts nothing, so it does not close the Ingress.
const noClientAllowed = "no client is served during maintenance"

// maintenanceAsked holds the values of the annotations maintenance and maintenance-allowlist.
type maintenanceAsked struct {
	On    bool
	Allow []string
}

// The method maintenance returns the filter that closes the Ingress for maintenance.
func (s *Settings) maintenance(string) []ir.Filter {
	if !s.Asked.Maintenance.On {
		return nil
	}
	return []ir.Filter{ir.Maintenance{Allow: s.Asked.Maintenance.Allow}}
}
