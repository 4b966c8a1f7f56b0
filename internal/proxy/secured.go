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

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/trust"
)

// Secured are the connections to endpoints that TLS is spoken with in one way. Routes that differ in anything of it never
// share a connection: one would speak in the name of the other, or to somebody whom the other does not believe. It is made
// by Pool.Secure.
type Secured struct {
	pool *Pool
	way  way
	// users is guarded by the mutex of the pool.
	users int

	mu      sync.Mutex
	current atomic.Pointer[generation]
}

// way is what makes connections differ. That of a Secret which was forgotten in between has another authority.
type way struct {
	tls       ir.BackendTLS
	authority *trust.Authority
}

// generation is a way with the contents that a Secret has for a while.
type generation struct {
	contents *trust.Contents
	// one is how TLS is spoken below HTTP/1.1. HTTP/2 is left to transports: clear and secure.
	one           *tls.Config
	clear, secure *transports
	// err says why nothing may be sent.
	err error
	// retired is guarded by the mutex of the pool.
	retired bool
}

func newGeneration(config *tls.Config, perAddress int, idleTimeout time.Duration) *generation {
	speaking := func(protocol string) *tls.Config {
		spoken := config.Clone()
		spoken.NextProtos = []string{protocol}
		return spoken
	}
	h2 := speaking("h2")
	return &generation{
		one:    speaking("http/1.1"),
		clear:  &transports{fresh: func() *http.Transport { return newTransport(nil, perAddress, idleTimeout) }},
		secure: &transports{fresh: func() *http.Transport { return newTransport(h2, perAddress, idleTimeout) }},
	}
}

func (g *generation) isRetired() bool { return g != nil && g.retired }

func (g *generation) closeIdle() {
	for _, t := range [...]*transports{g.clear, g.secure} {
		if t != nil {
			t.closeIdle()
		}
	}
}

// Secure returns the connections for a way to speak TLS, and counts one more user of them, until Release. The authority
// belongs to the Secret.
func (p *Pool) Secure(t *ir.BackendTLS, authority *trust.Authority) *Secured {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := way{*t, authority}
	s := p.secured[key]
	if s == nil {
		s = &Secured{pool: p, way: key}
		p.secured[key] = s
	}
	s.users++
	return s
}

// Release ends one use. After the last one no connection is kept; requests under way go on.
func (s *Secured) Release() {
	if s == nil {
		return
	}
	s.pool.mu.Lock()
	s.users--
	last := s.users == 0
	if last {
		delete(s.pool.secured, s.way)
	}
	s.pool.mu.Unlock()
	if last {
		s.forget()
	}
}

// forget closes what is idle. The next request begins anew.
func (s *Secured) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool.retire(s.current.Swap(nil))
}

// now returns the generation of the contents that the Secret has at this moment.
func (s *Secured) now() *generation {
	if g := s.current.Load(); g != nil && g.contents == s.way.authority.Contents() {
		return g
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	contents := s.way.authority.Contents()
	old := s.current.Load()
	if old != nil && old.contents == contents {
		return old
	}
	g := s.make(contents)
	s.current.Store(g)
	s.pool.retire(old)
	return g
}

func (s *Secured) make(contents *trust.Contents) *generation {
	config, err := contents.ClientConfig(&s.way.tls)
	if err != nil {
		return &generation{contents: contents, err: fmt.Errorf("TLS with the endpoints needs the Secret %s: %w", s.way.tls.Secret, err)}
	}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	g := newGeneration(config, s.pool.perAddress, s.pool.idleTimeout)
	g.contents = contents
	return g
}

// retire closes the connections of a generation that comes to an end, those with requests on them after these.
func (p *Pool) retire(g *generation) {
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
			p.counted(to, -len(list))
			delete(p.idle, to)
		}
	}
	p.mu.Unlock()
	for _, c := range found {
		c.close()
	}
}

// generation returns how a protocol is spoken with endpoints, by HTTPS, GRPC and GRPCS in one way; nil is the usual one. An error
// carries the status for the client, and nothing may be sent then.
func (p *Pool) generation(protocol ir.BackendProtocol, s *Secured) (*generation, error) {
	if s == nil || !speaksTLS(protocol) {
		return p.usual.Load(), nil
	}
	g := s.now()
	if g.err != nil {
		return nil, exchange.Fail(http.StatusBadGateway, g.err)
	}
	return g, nil
}

// speaksGRPC reports whether a protocol streams in both directions, so that either side may be silent for long.
func speaksGRPC(protocol ir.BackendProtocol) bool { return protocol == ir.GRPC || protocol == ir.GRPCS }

func speaksTLS(protocol ir.BackendProtocol) bool { return protocol == ir.HTTPS || protocol == ir.GRPCS }

// everySecured returns the Secured of all routes.
func (p *Pool) everySecured() []*Secured {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.secured))
}
