package caddyinternals

import (
	"crypto/tls"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// GetCertificate returns the certificate for a TLS handshake, as tls.Config.GetCertificate does.
type GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// WrapGetCertificate replaces the GetCertificate function in each TLS connection policy of a server with the result of
// wrap. It returns the number of changed policies. It must be called once for a server, after Caddy has provisioned it
// and before it accepts connections, like a listener wrapper.
//
// WrapGetCertificate relies on two facts: Caddy exports ConnectionPolicy.TLSConfig, which according to its comment "may
// be unexported in the future", and handshakes call TLSConfig.GetCertificate. A policy in which TLSConfig or
// GetCertificate is not set is not changed.
func WrapGetCertificate(server *caddyhttp.Server, wrap func(next GetCertificate) GetCertificate) int {
	if server == nil {
		return 0
	}
	wrapped := 0
	for _, policy := range server.TLSConnPolicies {
		if policy != nil && policy.TLSConfig != nil && policy.TLSConfig.GetCertificate != nil {
			policy.TLSConfig.GetCertificate = wrap(policy.TLSConfig.GetCertificate)
			wrapped++
		}
	}
	return wrapped
}
