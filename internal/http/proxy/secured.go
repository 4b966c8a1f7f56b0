package proxy

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

// Secured holds the connections to endpoints for one TLS configuration. Pool.Secure creates it. Routes whose
// configurations differ in any way never share a connection. Otherwise one route would present the client certificate
// of another, or use an endpoint that it does not trust itself.
type Secured struct {
	pool *Pool
	key  tlsKey
	// users is the number of calls of Secure without a matching Release. The mutex of the pool guards it.
	users int

	mu      sync.Mutex
	current atomic.Pointer[tlsClient]
}

// tlsKey is the key of a Secured. If a Secret is unloaded and loaded again, it has a new authority, and therefore a new
// key.
type tlsKey struct {
	tls       ir.BackendTLS
	authority *trust.Authority
}

// tlsClient is a TLS configuration with the contents that the Secret had at one time.
type tlsClient struct {
	contents *trust.Contents
	// http1Config is the TLS configuration for HTTP/1.1. The transports clear and secure speak HTTP/2, without and with
	// TLS.
	http1Config   *tls.Config
	clear, secure *transports
	// err is the reason why no request may be sent. Nil means that requests may be sent.
	err error
	// retired means that the connections are closed after their requests. The mutex of the pool guards it.
	retired bool
}

func newTLSClient(config *tls.Config, perAddress int, idleTimeout time.Duration) *tlsClient {
	speaking := func(protocol string) *tls.Config {
		spoken := config.Clone()
		spoken.NextProtos = []string{protocol}
		return spoken
	}
	h2 := speaking("h2")
	return &tlsClient{
		http1Config: speaking("http/1.1"),
		clear:       &transports{fresh: func() *http.Transport { return newTransport(nil, perAddress, idleTimeout) }},
		secure:      &transports{fresh: func() *http.Transport { return newTransport(h2, perAddress, idleTimeout) }},
	}
}

func (g *tlsClient) isRetired() bool { return g != nil && g.retired }

func (g *tlsClient) closeIdle() {
	for _, t := range [...]*transports{g.clear, g.secure} {
		if t != nil {
			t.closeIdle()
		}
	}
}

// Secure returns the connections for a TLS configuration. Each call adds one user until Release is called. authority
// belongs to the Secret of t.
func (p *Pool) Secure(t *ir.BackendTLS, authority *trust.Authority) *Secured {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := tlsKey{*t, authority}
	s := p.secured[key]
	if s == nil {
		s = &Secured{pool: p, key: key}
		p.secured[key] = s
	}
	s.users++
	return s
}

// Release removes one user. When the last user is removed, idle connections are closed, and from then on no connections
// are kept. Requests in progress continue.
func (s *Secured) Release() {
	if s == nil {
		return
	}
	s.pool.mu.Lock()
	s.users--
	last := s.users == 0
	if last {
		delete(s.pool.secured, s.key)
	}
	s.pool.mu.Unlock()
	if last {
		s.forget()
	}
}

// forget retires the current client, which closes its idle connections. The next request creates a new client.
func (s *Secured) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool.retire(s.current.Swap(nil))
}

// currentClient returns the client for the current contents of the Secret.
func (s *Secured) currentClient() *tlsClient {
	if g := s.current.Load(); g != nil && g.contents == s.key.authority.Contents() {
		return g
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	contents := s.key.authority.Contents()
	old := s.current.Load()
	if old != nil && old.contents == contents {
		return old
	}
	g := s.newClient(contents)
	s.current.Store(g)
	s.pool.retire(old)
	return g
}

func (s *Secured) newClient(contents *trust.Contents) *tlsClient {
	config, err := contents.ClientConfig(&s.key.tls)
	if err != nil {
		return &tlsClient{contents: contents,
			err: fmt.Errorf("TLS connections to the endpoints need the Secret %s: %w", s.key.tls.Secret, err)}
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	g := newTLSClient(config, s.pool.perAddress, s.pool.idleTimeout)
	g.contents = contents
	return g
}

// retire closes the idle connections of a client. Connections with requests are closed after their requests.
func (p *Pool) retire(g *tlsClient) {
	if g == nil {
		return
	}
	g.closeIdle()
	var found []*conn
	p.mu.Lock()
	g.retired = true
	for to, list := range p.idle {
		if to.secured == g {
			found = append(found, list...)
			p.addIdle(to, -len(list))
			delete(p.idle, to)
		}
	}
	p.mu.Unlock()
	for _, c := range found {
		c.close()
	}
}

// tlsClient returns the tlsClient for a protocol: the current client of s for HTTPS and GRPCS, otherwise the default
// client of the pool. An error carries the status for the client; no request may be sent then.
func (p *Pool) tlsClient(protocol ir.BackendProtocol, s *Secured) (*tlsClient, error) {
	if s == nil || !speaksTLS(protocol) {
		return p.defaultClient.Load(), nil
	}
	g := s.currentClient()
	if g.err != nil {
		return nil, exchange.Fail(http.StatusBadGateway, g.err)
	}
	return g, nil
}

// speaksGRPC reports whether a protocol is gRPC, which streams in both directions, so that either side may be silent
// for long.
func speaksGRPC(protocol ir.BackendProtocol) bool { return protocol == ir.GRPC || protocol == ir.GRPCS }

func speaksTLS(protocol ir.BackendProtocol) bool { return protocol == ir.HTTPS || protocol == ir.GRPCS }

// allSecured returns all Secured of the pool.
func (p *Pool) allSecured() []*Secured {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.secured))
}
