package l4app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

// secured holds the TLS configuration for connections to the endpoints of a port. Each handshake uses the current
// contents of the configured Secret. While the contents are invalid, handshakes fail.
type secured struct {
	settings  ir.BackendTLS
	authority *trust.Authority

	mu      sync.Mutex
	current atomic.Pointer[secretTLS]
}

// secretTLS is the TLS configuration that was created from the contents of a Secret at one point in time, or the error
// if these contents are invalid.
type secretTLS struct {
	contents *trust.Contents
	config   *tls.Config
	err      error
}

func newSecured(settings *ir.BackendTLS, secrets *trust.Store) (*secured, error) {
	if settings.Secret.IsZero() && settings.Verify {
		return nil,
			errors.New("endpoints can only be verified with the certificate authorities of a Secret: name a Secret")
	}
	s := &secured{settings: *settings}
	if !settings.Secret.IsZero() {
		s.authority = secrets.Authority(settings.Secret)
	}
	return s, nil
}

func (s *secured) contents() *trust.Contents {
	if s.authority == nil {
		return nothing
	}
	return s.authority.Contents()
}

// The value nothing replaces the contents of a Secret if no Secret is configured. The endpoint's certificate is then
// not verified, and no client certificate is sent.
var nothing = new(trust.Contents)

func (s *secured) now() *secretTLS {
	contents := s.contents()
	if g := s.current.Load(); g != nil && g.contents == contents {
		return g
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &secretTLS{contents: contents}
	if g.config, g.err = contents.ClientConfig(&s.settings); g.err != nil {
		g.err = fmt.Errorf("TLS connections to the endpoints need the Secret %s: %w", s.settings.Secret, g.err)
	}
	s.current.Store(g)
	return g
}

// speak performs the TLS handshake on a connection to an endpoint, and returns the encrypted connection.
func (s *secured) speak(ctx context.Context, conn net.Conn) (net.Conn, error) {
	g := s.now()
	if g.err != nil {
		return nil, g.err
	}
	secure := tls.Client(conn, g.config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("the TLS handshake with the endpoint: %w", err)
	}
	return secure, nil
}
