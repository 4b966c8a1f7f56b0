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

// certificateHook selects the certificates for the handshakes of one server before certmagic does. certmagic also calls
// managers such as Certificates, but gives all simultaneous handshakes for one name the certificate of the first one.
// If a host has an ECDSA and an RSA certificate, clients could then get one that they cannot use. It also takes a
// process-wide lock for each handshake.
//
// Handshakes without a certificate in the store are left to certmagic: Caddy's own certificates and the default
// certificate. A host with TLS passthrough has no certificate: its connections over TCP are forwarded before the
// handshake, so only clients that use QUIC or hide the name get here.
type certificateHook struct {
	server *caddyhttp.Server
	store  *certs.Store
	hosts  *live.Table
	log    *zap.Logger
	once   sync.Once
}

func newCertificateHook(server *caddyhttp.Server, e *engine.Engine, log *zap.Logger) *certificateHook {
	return &certificateHook{server: server, store: e.Certificates(), hosts: e.Table(), log: log}
}

// install wraps the TLS policies of the server, which Caddy has provisioned before it starts to listen. If this fails,
// certmagic calls Certificates.
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

// challengeProtocol is the ALPN protocol with which a certificate authority validates a host by a handshake (RFC 8737).
const challengeProtocol = "acme-tls/1"

// wrap returns a GetCertificate function that looks for a certificate in the store first, and then calls next. It
// returns neither a certificate nor an error for a host with TLS passthrough.
func (s *certificateHook) wrap(next caddyinternals.GetCertificate) caddyinternals.GetCertificate {
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		port := front.PortOf(hello.Context())
		if s.hosts.Passthrough(port, hello.ServerName) != nil {
			// crypto/tls then sends the alert unrecognized_name.
			return nil, nil
		}
		if port != live.ServerPorts {
			if c := s.store.FindFor(s.hosts.ListenerFor(port, hello.ServerName), hello); c != nil {
				return c, nil
			}
		}
		if !slices.Contains(hello.SupportedProtos, challengeProtocol) {
			if c := s.store.Find(hello); c != nil {
				return c, nil
			}
		}
		return next(hello)
	}
}
