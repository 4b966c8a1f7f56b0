package k8singress

import (
	"crypto/tls"
	"slices"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/engine"
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
	once   sync.Once
}

// newShortcut finds the server that a module of it is provisioned for. Without one there is no shortcut, and certmagic
// asks the manager.
func newShortcut(ctx caddy.Context, e *engine.Engine) *shortcut {
	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	return &shortcut{server: server, store: e.Certificates(), hosts: e.Table()}
}

// take changes the policies of the server. Caddy has made them by the time that it starts to listen, and no handshake has
// seen them yet.
func (s *shortcut) take() {
	s.once.Do(func() {
		if s.server == nil {
			return
		}
		for _, policy := range s.server.TLSConnPolicies {
			if policy.TLSConfig != nil && policy.TLSConfig.GetCertificate != nil {
				policy.TLSConfig.GetCertificate = s.before(policy.TLSConfig.GetCertificate)
			}
		}
	})
}

// challengeProtocol is what an authority asks for to check a host by a handshake (RFC 8737).
const challengeProtocol = "acme-tls/1"

type getCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

func (s *shortcut) before(next getCertificate) getCertificate {
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if s.hosts.Passthrough(hello.ServerName) != nil {
			// crypto/tls says that the name is not recognized.
			return nil, nil
		}
		if !slices.Contains(hello.SupportedProtos, challengeProtocol) {
			if c := s.store.Find(hello); c != nil {
				return c, nil
			}
		}
		return next(hello)
	}
}
