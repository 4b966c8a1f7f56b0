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

	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/trust"
)

func init() { caddy.RegisterModule(new(TLS)) }

// tlsTime is how long a handshake may take, as that of HTTPS.
const tlsTime = 10 * time.Second

// TLS ends the TLS of clients, and hands what is inside of it to the next handler. The certificate is looked up for each
// handshake, so that another one takes effect without a change of the port. While there is none, every handshake fails: what
// was meant to be private is never passed on without TLS, and no other certificate takes the place of the one that is meant.
//
// TLS 1.2 and 1.3 are spoken. A client that offers one application protocol (ALPN) gets it: some clients insist on an answer,
// and who reads the bytes is known by the port. Of several none is chosen.
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

// Provision finds the certificates.
func (h *TLS) Provision(ctx caddy.Context) error {
	scope := scopeOf(ctx)
	switch {
	case scope == nil:
		return errors.New("this handler works on ports that the ingress controller opens: annotate the Service of the port")
	case h.Secret.IsZero() == (h.Host == ""):
		return errors.New("one of secret and host says where the certificate comes from")
	case !h.Secret.IsZero():
		h.authority = scope.tables.Trust.Authority(h.Secret)
	}
	h.store = scope.tables.Certificates
	h.account, h.log = scope.account, scope.log
	h.config = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: h.certificate, GetConfigForClient: h.configFor}
	return nil
}

// Handle does the handshake.
func (h *TLS) Handle(cx *layer4.Connection, next layer4.Handler) error {
	if err := cx.SetDeadline(time.Now().Add(tlsTime)); err != nil {
		return err
	}
	secure := tls.Server(cx, h.config)
	if err := secure.HandshakeContext(cx.Context); err != nil {
		if errors.Is(err, io.EOF) {
			// Load balancers look in like that.
			return nil
		}
		h.account.warn(h.log, noHandshake, "closing a connection without a TLS handshake",
			zap.Stringer("client", cx.RemoteAddr()), zap.Error(err))
		return nil
	}
	if err := cx.SetDeadline(time.Time{}); err != nil {
		return err
	}
	// Not what cx has read ahead: that was TLS.
	inner := layer4.WrapConnection(secure, nil, cx.Logger)
	notedOf(cx).goesWith(inner)
	return next.Handle(inner)
}

// configFor fails where there is no certificate, for sessions that are resumed, too, of which nobody asks for one.
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
	return nil, fmt.Errorf("the port has no certificate yet: an issuer is asked for one of %s", h.Host)
}

var (
	_ caddy.Provisioner  = (*TLS)(nil)
	_ layer4.NextHandler = (*TLS)(nil)
)
