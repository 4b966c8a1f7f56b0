package caddyinternals

import (
	"crypto/tls"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// GetCertificate returns the certificate for a TLS handshake, as tls.Config.GetCertificate does.
type GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// WrapGetCertificate replaces how each TLS connection policy of a server finds certificates by what wrap makes of it, and
// returns for how many policies it did. It is to be called once for a server, when Caddy has provisioned it and before it
// accepts connections, as a listener wrapper is.
//
// It relies on ConnectionPolicy.TLSConfig, which Caddy exports "so it can be minimally adjusted after provisioning if
// necessary" and "may be unexported in the future", and on its GetCertificate being what a handshake calls. A policy
// without either is left as it is.
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
