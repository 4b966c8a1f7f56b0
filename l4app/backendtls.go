package l4app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/trust"
)

// secured is how TLS is spoken with the endpoints of a port. What the Secret says at the moment of a handshake counts;
// while it is no good there is none.
type secured struct {
	way       ir.BackendTLS
	authority *trust.Authority

	mu      sync.Mutex
	current atomic.Pointer[generation]
}

// generation is what the contents of a Secret amount to.
type generation struct {
	contents *trust.Contents
	config   *tls.Config
	err      error
}

func newSecured(way *ir.BackendTLS, secrets *trust.Store) (*secured, error) {
	if way.Secret.IsZero() && way.Verify {
		return nil, errors.New("endpoints can be verified with the authorities of a Secret only: name one")
	}
	s := &secured{way: *way}
	if !way.Secret.IsZero() {
		s.authority = secrets.Authority(way.Secret)
	}
	return s, nil
}

func (s *secured) contents() *trust.Contents {
	if s.authority == nil {
		return nothing
	}
	return s.authority.Contents()
}

// nothing is for those who neither verify nor show a certificate.
var nothing = new(trust.Contents)

func (s *secured) now() *generation {
	contents := s.contents()
	if g := s.current.Load(); g != nil && g.contents == contents {
		return g
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &generation{contents: contents}
	if g.config, g.err = contents.ClientConfig(&s.way); g.err != nil {
		g.err = fmt.Errorf("TLS with the endpoints needs the Secret %s: %w", s.way.Secret, g.err)
	}
	s.current.Store(g)
	return g
}

// speak does the handshake on a connection.
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
