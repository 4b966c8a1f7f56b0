package k8singress

import (
	"crypto/tls"
	"slices"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/process/caddyinternals"
	"github.com/k8singress/k8singress/internal/tls/certs"
)

// certificateHook selects the certificate for each TLS handshake of one server, before certmagic does. Without it,
// certmagic would call the certificate manager Certificates. However, certmagic gives all simultaneous handshakes for a
// name the certificate of the first handshake. If a host has both an ECDSA and an RSA certificate, clients could then
// get a certificate that they do not support. certmagic also takes a process-wide lock for each handshake.
//
// If the certificate store has no certificate for a handshake, certmagic selects one of Caddy's own certificates or the
// default certificate. A host with TLS passthrough has no certificate. TCP connections for such a host are forwarded
// before the handshake. So the hook is only called for such a host if the client uses QUIC, or if its server name could
// not be read before the handshake.
type certificateHook struct {
	server *caddyhttp.Server
	engine *engine.Engine
	store  *certs.Store
	hosts  *live.Table
	log    *zap.Logger
	once   sync.Once
}

func newCertificateHook(server *caddyhttp.Server, e *engine.Engine, log *zap.Logger) *certificateHook {
	return &certificateHook{server: server, engine: e, store: e.Certificates(), hosts: e.Table(), log: log}
}

// install adds the hook to the TLS connection policies of the server. It must be called after Caddy has provisioned the
// policies, when Caddy opens the listeners of the server. If a policy cannot be changed, certmagic calls the
// certificate manager Certificates for handshakes with this policy.
func (s *certificateHook) install() {
	s.once.Do(func() {
		wrapped := caddyinternals.WrapGetCertificate(s.server, s.wrap)
		if s.server == nil || wrapped < len(s.server.TLSConnPolicies) {
			s.log.Warn(
				"this version of Caddy is not fully supported: if a host has certificates with several key types, " +
					"some clients may get a certificate that they cannot use")
		}
	})
}

// challengeProtocol is the ALPN protocol of the TLS-ALPN-01 challenge (RFC 8737), with which a certificate authority
// validates a host.
const challengeProtocol = "acme-tls/1"

// wrap returns a GetCertificate function that first looks for a certificate in the store, and calls next if there is no
// certificate. For a host with TLS passthrough, it returns neither a certificate nor an error.
func (s *certificateHook) wrap(next caddyinternals.GetCertificate) caddyinternals.GetCertificate {
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		host := hostOf(s.hosts, hello)
		if host.Passthrough(hello.ServerName) != nil {
			// crypto/tls then rejects the handshake with the alert unrecognized_name.
			return nil, nil
		}
		if port := front.PortOf(hello.Conn); port != live.ServerPorts {
			if c := s.store.FindFor(s.hosts.ListenerFor(port, hello.ServerName), hello); c != nil {
				return c, nil
			}
		}
		if !slices.Contains(hello.SupportedProtos, challengeProtocol) {
			if c := s.store.Find(hello); c != nil {
				return c, nil
			}
			if _, ok := host.OnDemand(); ok {
				if c := s.engine.CertificateOnDemand(hello.Context(), hello.ServerName); c != nil {
					return c, nil
				}
			}
		}
		return next(hello)
	}
}
