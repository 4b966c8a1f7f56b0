package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/process/wake"
)

// The limits of a connection. If no request arrives, it is closed after headerTimeout. The API server closes its own
// idle connections before idleTimeout.
const (
	maxHeader     = 16 << 10
	headerTimeout = 10 * time.Second
	writeTimeout  = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// listenRetry is the delay before the server tries again to open its socket.
const listenRetry = time.Second

// Server is the HTTPS server of the webhook. It outlives the configurations of Caddy: a reload interrupts no review,
// and replaces the listener only if its address changes. Its methods are safe for concurrent use.
type Server struct {
	handler *Handler
	log     *zap.Logger
	// source is the current source of the certificate. Each handshake uses the latest one. It is nil until Configure is
	// called, which may be long after Run.
	source atomic.Pointer[Source]
	// state describes the certificate. It is nil if there is no source. changes receives a value when its verdicts have
	// changed.
	state   atomic.Pointer[state]
	changes wake.Signal
	// configured receives a value when Configure was called.
	configured  wake.Signal
	connections *connections

	mu sync.Mutex
	// address is where the server should listen, or "". changed is closed when it changes.
	address string
	changed chan struct{}
}

// NewServer returns a server that listens after Configure and Run were called.
func NewServer(handler *Handler, log *zap.Logger) *Server {
	return &Server{handler: handler, log: log, configured: wake.New(), changes: wake.New(),
		connections: newConnections(), changed: make(chan struct{})}
}

// Configure sets the address and the source of the certificate, which may be nil. If the address is empty, the server
// stops listening. Configure does not wait.
func (s *Server) Configure(address string, source Source) {
	s.source.Store(&source)
	s.configured.Send()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.address != address {
		s.address = address
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// currentSource returns the current source of the certificate. It returns nil before Configure.
func (s *Server) currentSource() Source {
	if source := s.source.Load(); source != nil {
		return *source
	}
	return nil
}

func (s *Server) target() (address string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address, s.changed
}

// Run serves reviews until ctx ends, and then completes the reviews in progress.
func (s *Server) Run(ctx context.Context) {
	// Run does not wait for it: the files may be on a volume that does not respond.
	panics.Go("webhook/certificates", func() { s.watch(ctx) })
	for ctx.Err() == nil {
		address, changed := s.target()
		if address == "" {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		if err := s.serve(ctx, address, changed); err != nil && ctx.Err() == nil {
			s.log.Error("the admission webhook cannot listen; trying again", zap.String("address", address),
				zap.Error(err))
			select {
			case <-time.After(listenRetry):
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// serve listens on one address until the address changes or ctx ends.
func (s *Server) serve(ctx context.Context, address string, changed <-chan struct{}) error {
	listener, err := listen(ctx, address)
	if err != nil {
		return err
	}
	server := s.server()
	ended := make(chan error, 1)
	var running panics.Group
	running.Go("webhook/serve", func() { ended <- server.ServeTLS(s.connections.limit(listener), "", "") },
		func() { ended <- errors.New("the server has panicked") })
	s.log.Info("the admission webhook listens", zap.String("address", address))
	select {
	case <-changed:
	case <-ctx.Done():
	case err = <-ended:
	}
	// Reviews take at most maxTime. The context of the caller may have ended already.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*maxTime)
	defer cancel()
	if server.Shutdown(last) != nil {
		_ = server.Close()
	}
	running.Wait()
	return err
}

// listen opens a socket that a second engine of this process can share, so that no connection is refused while one
// replaces the other.
func listen(ctx context.Context, address string) (net.Listener, error) {
	parsed, err := caddy.ParseNetworkAddress(address)
	if err != nil {
		return nil, err
	}
	opened, err := parsed.Listen(ctx, 0, net.ListenConfig{})
	if err != nil {
		return nil, err
	}
	listener, ok := opened.(net.Listener)
	if !ok {
		return nil, fmt.Errorf("%s is not a TCP address", address)
	}
	return listener, nil
}

// server returns a server for HTTP/1.1. The API server uses HTTP/1.1 for webhooks, and each other protocol would be
// another way to use up memory.
func (s *Server) server() *http.Server {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	peerFaults, _ := zap.NewStdLogAt(s.log, zap.DebugLevel) // It only fails for an unknown level.
	return &http.Server{
		Handler: s.connections.handler(s.handler), Protocols: protocols, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		ConnState: s.connections.follow, ConnContext: withConnection,
		// Faults of a peer, such as a request without TLS, concern no user, so they are logged at debug level.
		ErrorLog: peerFaults,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				return nil, s.connections.handshakes.Wait(hello.Context())
			},
			GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				if source := s.currentSource(); source != nil {
					return source.GetCertificate(hello)
				}
				return nil, errNoSource
			},
		},
	}
}
