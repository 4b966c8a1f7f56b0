package l4app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

// secured holds the TLS configuration for connections to the endpoints of a port. Each handshake uses the current
// contents of the configured Secret. While the contents are invalid, handshakes fail.
type secured struct{ *trust.Client[*tls.Config] }

func newSecured(settings *ir.BackendTLS, secrets *trust.Store) (*secured, error) {
	var authority *trust.Authority
	switch {
	case !settings.Secret.IsZero():
		authority = secrets.Authority(settings.Secret)
	case settings.Verify:
		return nil,
			errors.New("endpoints can only be verified with the certificate authorities of a Secret: name a Secret")
	}
	return &secured{trust.NewClient(settings, authority,
		func(config *tls.Config) *tls.Config { return config }, func(*tls.Config) {})}, nil
}

// speak performs the TLS handshake on a connection to an endpoint, and returns the encrypted connection.
func (s *secured) speak(ctx context.Context, conn net.Conn) (net.Conn, error) {
	config, err := s.Current()
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("the TLS handshake with the endpoint: %w", err)
	}
	return secure, nil
}
