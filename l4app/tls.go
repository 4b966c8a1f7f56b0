package l4app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tls/certs"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

func init() { caddy.RegisterModule(new(TLS)) }

// tlsTime is the maximum duration of a TLS handshake, the same as for HTTPS.
const tlsTime = 10 * time.Second

// TLS terminates TLS and passes the decrypted connection to the next handler. It looks up the certificate at each
// handshake, so that a new certificate takes effect without changing the port. While there is no certificate, every
// handshake fails: private data is never forwarded without TLS, and no other certificate is used instead.
//
// TLS 1.2 and 1.3 are supported. If a client offers exactly one application protocol (ALPN), that protocol is accepted,
// because some clients require a protocol to be chosen, and the port alone determines which service gets the data. If a
// client offers several protocols, none of them is chosen.
type TLS struct {
	ir.StreamTLS

	store     *certs.Store
	authority *trust.Authority
	config    *tls.Config
	account   *account
	log       *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*TLS) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "layer4.handlers.k8singress_tls", New: func() caddy.Module { return new(TLS) }}
}

// Provision looks up the Secret or the host from which the certificate comes.
func (h *TLS) Provision(ctx caddy.Context) error {
	scope := scopeOf(ctx)
	switch {
	case scope == nil:
		return errors.New(
			"this handler works only on ports that the ingress controller opens: annotate the Service of the port")
	case h.Secret.IsZero() == (h.Host == ""):
		return errors.New("exactly one of 'secret' and 'host' must be set")
	case !h.Secret.IsZero():
		h.authority = scope.tables.Trust.Authority(h.Secret)
	}
	h.store = scope.tables.Certificates
	h.account, h.log = scope.account, scope.log
	h.config = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: h.certificate, GetConfigForClient: h.configFor}
	return nil
}

// Handle performs the TLS handshake and calls the next handler with the decrypted connection.
func (h *TLS) Handle(cx *layer4.Connection, next layer4.Handler) error {
	if err := cx.SetDeadline(time.Now().Add(tlsTime)); err != nil {
		return err
	}
	secure := tls.Server(cx, h.config)
	if err := secure.HandshakeContext(cx.Context); err != nil {
		if errors.Is(err, io.EOF) {
			// This is not an error: load balancers check the port by opening a connection without sending any data.
			return nil
		}
		h.account.warn(h.log, noHandshake, "closing a connection: the TLS handshake failed",
			zap.Stringer("client", cx.RemoteAddr()), zap.Error(err))
		return nil
	}
	if err := cx.SetDeadline(time.Time{}); err != nil {
		return err
	}
	// Create the connection without the bytes that cx has buffered: they are encrypted, and the next handler must not
	// read them.
	inner := layer4.WrapConnection(secure, nil, cx.Logger)
	recordOf(cx).attach(inner)
	return next.Handle(inner)
}

// configFor returns the TLS configuration for a handshake, or nil for the default configuration. It returns an error if
// there is no certificate. GetCertificate could not do this, because crypto/tls does not call it for resumed sessions.
func (h *TLS) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if _, err := h.certificate(hello); err != nil || len(hello.SupportedProtos) != 1 {
		return nil, err
	}
	config := h.config.Clone()
	config.NextProtos = hello.SupportedProtos
	return config, nil
}

func (h *TLS) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if h.authority != nil {
		pair, err := h.authority.Pair()
		if err != nil {
			return nil, fmt.Errorf("the port has no certificate: Secret %s: %w", h.Secret, err)
		}
		return pair, nil
	}
	if pair := h.store.Own(h.Host, hello); pair != nil {
		return pair, nil
	}
	return nil, fmt.Errorf("the port has no certificate yet: an issuer has been requested to issue one for %s", h.Host)
}

var (
	_ caddy.Provisioner  = (*TLS)(nil)
	_ layer4.NextHandler = (*TLS)(nil)
)
