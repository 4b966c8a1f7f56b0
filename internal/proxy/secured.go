package proxy

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

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

// generation are the transports with the contents that a Secret has for a while.
type generation struct {
	contents   *trust.Contents
	transports transports
	// err says why nothing may be sent.
	err error
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
	s.current.Swap(nil).retire()
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
	old.retire()
	return g
}

func (s *Secured) make(contents *trust.Contents) *generation {
	config, err := contents.ClientConfig(&s.way.tls)
	if err != nil {
		return &generation{contents: contents, err: fmt.Errorf("TLS with the endpoints needs the Secret %s: %w", s.way.tls.Secret, err)}
	}
	perAddress, idleTimeout := s.pool.limits()
	g := &generation{contents: contents, transports: transports{}}
	for _, protocol := range []ir.BackendProtocol{ir.HTTPS, ir.GRPCS} {
		g.transports[protocol] = newTransport(protocol, speaking(protocol, config.Clone()), perAddress, idleTimeout)
	}
	return g
}

// retire closes the connections of a generation that comes to an end, those with requests on them after these.
func (g *generation) retire() {
	if g != nil {
		g.transports.closeIdle()
	}
}

// Secure has a request speak TLS in that way, if it speaks TLS with its endpoints at all; nil is any. An error carries the
// status for the client, and nothing may be sent then.
func (x *Exchange) Secure(r *http.Request, s *Secured) error {
	if s == nil || !speaksTLS(x.settings.protocol(r)) {
		return nil
	}
	g := s.now()
	if g.err != nil {
		return caddyhttp.Error(http.StatusBadGateway, g.err)
	}
	x.transports = g.transports
	return nil
}

func speaksTLS(protocol ir.BackendProtocol) bool { return protocol == ir.HTTPS || protocol == ir.GRPCS }

// limits are those of idle connections.
func (p *Pool) limits() (perAddress int, idleTimeout time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.perAddress, p.idleTimeout
}

// everySecured returns the Secured of all routes.
func (p *Pool) everySecured() []*Secured {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*Secured, 0, len(p.secured))
	for _, s := range p.secured {
		all = append(all, s)
	}
	return all
}

// speaking has a configuration speak a protocol.
func speaking(protocol ir.BackendProtocol, config *tls.Config) *tls.Config {
	config.NextProtos = []string{"http/1.1"}
	if protocol == ir.GRPCS {
		config.NextProtos = []string{"h2"}
	}
	return config
}
