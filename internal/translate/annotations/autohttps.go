package annotations

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The values that select the hosts with a certificate from an issuer.
const (
	// AutoHTTPSOff selects no host.
	AutoHTTPSOff = "off"
	// AutoHTTPSListed selects the hosts that an entry of spec.tls without a Secret lists.
	AutoHTTPSListed = "tls"
	// AutoHTTPSAll selects all hosts without a Secret.
	AutoHTTPSAll = "all"
)

// AutoHTTPS is the row of the annotation. The key in the ConfigMap has the same meaning.
var AutoHTTPS = Annotation{
	Name: OwnPrefix + "auto-https",
	Doc: "Selects the hosts of the Ingress that get a certificate from an issuer, such as Let's Encrypt. With " +
		"`tls`: the hosts in entries of `spec.tls` without `secretName`. With `all` or `true`: all hosts without a " +
		"Secret. With `off` or `false`: no hosts. See [HTTPS](https.md).",
	Values: "true, false, off, tls or all", Example: "true", Default: "tls, or the value of the option auto_https",
	Scope: ScopeIngress, Risk: RiskLow,
	Parse: nginx.Into(func(s *Settings) *string { return &s.AutoHTTPS }, ReadAutoHTTPS),
}

// ReadAutoHTTPS reads the value that selects the hosts with a certificate from an issuer.
func ReadAutoHTTPS(value string) (string, error) {
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
