package proxy

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

// Secured holds the connections to endpoints for one TLS configuration. It is created by Pool.Secure. Routes with
// different TLS configurations never share a connection. Otherwise a route could present the client certificate of
// another route, or use an endpoint whose certificate only the other route trusts.
type Secured struct {
	pool *Pool
	key  tlsKey
	// users is the reference count: the number of calls of Secure without a matching Release. It is guarded by Pool.mu.
	users int
	// client has the connections for the server name. It is nil if the name contains variables; names has the
	// connections then.
	client *trust.Client[*tlsClient]
	names  *serverNames
}

// tlsKey is the key of a Secured in Pool.secured. authority holds the contents of the Secret that tls refers to. If a
// Secret becomes unused and is used again later, it gets a new authority, and therefore a new tlsKey.
type tlsKey struct {
	tls       ir.BackendTLS
	authority *trust.Authority
}

// tlsClient holds the TLS configuration and the HTTP/2 connections for one version of the Secret's contents. When the
// Secret changes, a new tlsClient replaces it.
type tlsClient struct {
	// http1Config is the TLS configuration for HTTP/1.1. The transports in clear and secure use HTTP/2: clear without
	// TLS, and secure with TLS.
	http1Config   *tls.Config
	clear, secure *transports
	// retired is true if connections must be closed when their requests end, instead of being kept in the pool. It is
	// guarded by Pool.mu.
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

// Secure returns the Secured for a TLS configuration, and increments its reference count. The caller must call Release
// when it no longer needs the Secured. authority holds the contents of the Secret that t refers to. It is nil if t
// refers to no Secret. Secure returns an error if the server name is not a valid template.
func (p *Pool) Secure(t *ir.BackendTLS, authority *trust.Authority) (*Secured, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := tlsKey{*t, authority}
	s := p.secured.Get(key)
	if s == nil {
		var err error
		if s, err = p.newSecured(key); err != nil {
			return nil, err
		}
		p.secured.Set(key, s)
	}
	s.users++
	return s, nil
}

func (p *Pool) newSecured(key tlsKey) (*Secured, error) {
	newClient := func(name string) *trust.Client[*tlsClient] {
		settings := key.tls
		settings.Name = name
		return trust.NewClient(&settings, key.authority, p.newTLSClient, p.retire)
	}
	s := &Secured{pool: p, key: key}
	if !key.tls.NameVaries() {
		s.client = newClient(key.tls.Name)
		return s, nil
	}
	template, err := nginx.ParseTemplate(key.tls.Name, nil)
	if err != nil {
		return nil, fmt.Errorf("the server name for the endpoints: %w", err)
	}
	s.names = &serverNames{template: template, newClient: newClient}
	return s, nil
}

// reset closes the idle connections.
func (s *Secured) reset() {
	if s.names != nil {
		s.names.reset()
		return
	}
	s.client.Reset()
}

// current returns the tlsClient for a request.
func (s *Secured) current(x *exchange.Exchange) (*tlsClient, error) {
	client := s.client
	if s.names != nil {
		var err error
		if client, err = s.names.of(x); err != nil {
			return nil, err
		}
	}
	g, err := client.Current()
	if err != nil {
		return nil, exchange.Fail(http.StatusBadGateway, err)
	}
	return g, nil
}

// Release decrements the reference count. When it reaches zero, the idle connections are closed, and no further
// connections are kept. Requests in progress continue. s may be nil.
func (s *Secured) Release() {
	if s == nil {
		return
	}
	s.pool.mu.Lock()
	s.users--
	last := s.users == 0
	if last {
		s.pool.secured.Delete(s.key)
	}
	s.pool.mu.Unlock()
	if last {
		s.reset()
	}
}

func (p *Pool) newTLSClient(config *tls.Config) *tlsClient {
	p.mu.Lock()
	defer p.mu.Unlock()
	return newTLSClient(config, p.perAddress, p.idleTimeout)
}

// retire closes the idle connections of a tlsClient. Connections that are used by a request are closed after that
// request.
func (p *Pool) retire(g *tlsClient) {
	if g == nil {
		return
	}
	g.closeIdle()
	var found []*conn
	p.mu.Lock()
	g.retired = true
	for to, list := range p.idle.All() {
		if to.secured == g {
			found = append(found, list...)
			p.addIdle(to, -len(list))
			p.idle.Delete(to)
		}
	}
	p.mu.Unlock()
	for _, c := range found {
		c.close()
	}
}

// chooseTLSClient sets r.tlsClient. For HTTPS and GRPCS, this is the current tlsClient of s. For other protocols, or if
// s is nil, it is the pool's default. If chooseTLSClient returns an error, no request may be sent. The error contains
// the status code for the client.
func (r *request) chooseTLSClient(s *Secured) (err error) {
	if s == nil || !speaksTLS(r.protocol) {
		r.tlsClient = r.pool.defaultClient.Load()
		return nil
	}
	r.nameVaries = s.names != nil
	r.tlsClient, err = s.current(r.Exchange)
	return err
}

// speaksGRPC reports whether a protocol is gRPC, which streams in both directions, so that either side may be silent
// for long.
func speaksGRPC(protocol ir.BackendProtocol) bool { return protocol == ir.GRPC || protocol == ir.GRPCS }

func speaksTLS(protocol ir.BackendProtocol) bool { return protocol == ir.HTTPS || protocol == ir.GRPCS }

// allSecured returns the Secured of all TLS configurations in the pool.
func (p *Pool) allSecured() []*Secured {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(p.secured.Values())
}
