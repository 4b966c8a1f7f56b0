package k8singress

import (
	"crypto/tls"
	"slices"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/caddyinternals"
	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/engine"
	"github.com/k8singress/k8singress/internal/front"
	"github.com/k8singress/k8singress/internal/live"
)

// shortcut answers the handshakes of one server from the table of certificates, before certmagic is asked. certmagic asks
// a manager such as Certificates, too, but gives all handshakes for one name that come at the same moment the certificate
// that the first of them was given: with an ECDSA and an RSA certificate for one host, clients would get one that they
// cannot use. It also takes a lock of the whole process for each handshake.
//
// What the table has nothing for is left to certmagic: certificates of Caddy's own, and the default one. A host whose TLS ends
// elsewhere has none: its clients come by TCP and get past us, unless they speak QUIC, or have hidden the name.
type shortcut struct {
	server *caddyhttp.Server
	store  *certs.Store
	hosts  *live.Table
	log    *zap.Logger
	once   sync.Once
}

func newShortcut(server *caddyhttp.Server, e *engine.Engine, log *zap.Logger) *shortcut {
	return &shortcut{server: server, store: e.Certificates(), hosts: e.Table(), log: log}
}

// install changes the TLS policies of the server, which Caddy has made by the time that it starts to listen. Where that is not
// possible, certmagic asks Certificates.
func (s *shortcut) install() {
	s.once.Do(func() {
		wrapped := caddyinternals.WrapGetCertificate(s.server, s.before)
		if s.server == nil || wrapped < len(s.server.TLSConnPolicies) {
			s.log.Warn("this version of Caddy is not fully supported: a host with certificates for several types of keys may show some " +
				"clients one that they cannot use")
		}
	})
}

// challengeProtocol is what an authority asks for to check a host by a handshake (RFC 8737).
const challengeProtocol = "acme-tls/1"

func (s *shortcut) before(next caddyinternals.GetCertificate) caddyinternals.GetCertificate {
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		port := front.PortOf(hello.Context())
		if s.hosts.Passthrough(port, hello.ServerName) != nil {
			// crypto/tls says that the name is not recognized.
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
