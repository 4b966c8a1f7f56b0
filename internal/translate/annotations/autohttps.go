package annotations

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The values of auto-https. They select the hosts that get a certificate from an issuer.
const (
	// AutoHTTPSOff selects no host.
	AutoHTTPSOff = "off"
	// AutoHTTPSListed selects the hosts in entries of spec.tls without a secretName.
	AutoHTTPSListed = "tls"
	// AutoHTTPSAll selects all hosts that have no Secret in spec.tls.
	AutoHTTPSAll = "all"
)

// AutoHTTPS is the annotation k8singress.io/auto-https. The ConfigMap key auto-https has the same meaning.
var AutoHTTPS = Annotation{
	Name: OwnPrefix + "auto-https",
	Doc: "Selects the hosts of the Ingress for which the controller gets certificates from an issuer, such as Let's " +
		"Encrypt. `tls` selects the hosts in entries of `spec.tls` without `secretName`. `all` and `true` select all " +
		"hosts without a Secret. `off` and `false` select no hosts. See [HTTPS](https.md).",
	Values: "true, false, off, tls or all", Example: "true", Default: "tls, or the value of the option auto_https",
	Scope: ScopeIngress, Risk: RiskLow, Passthrough: true,
	Parse: nginx.Into(func(s *Settings) *string { return &s.AutoHTTPS }, readAutoHTTPS),
}

// OnDemandTLS is the annotation k8singress.io/on-demand-tls.
var OnDemandTLS = Annotation{
	Name: OwnPrefix + "on-demand-tls",
	Doc: "Gets a certificate for a name during the first TLS handshake for the name, if a rule of the Ingress " +
		"without a host, or with a wildcard, serves the name and there is no other certificate for it. Caddy's " +
		"global option `on_demand_tls` decides about each name; without this option, the annotation has no effect. " +
		"See [HTTPS](https.md#certificates-on-demand).",
	Values: booleans, Example: "true", Default: "false", Scope: ScopeIngress, Risk: RiskLow, Passthrough: true,
	Parse: nginx.Into(func(s *Settings) *bool { return &s.OnDemandTLS }, nginx.Bool),
}

// readAutoHTTPS parses and checks a value of auto-https.
func readAutoHTTPS(value string) (string, error) {
	switch strings.ToLower(value) {
	case AutoHTTPSOff, "false":
		return AutoHTTPSOff, nil
	case AutoHTTPSAll, "true":
		return AutoHTTPSAll, nil
	case AutoHTTPSListed:
		return AutoHTTPSListed, nil
	}
	return "", fmt.Errorf("%s is not one of true, false, off, tls and all", nginx.Quote(value))
}
