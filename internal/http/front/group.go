package front

import (
	"crypto/tls"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Group holds the connections of all servers with one name, across configurations.
type Group struct {
	front *Front
	name  string
	// bindings are the running servers, in the order in which they started: Caddy starts the new configuration before
	// it stops the old one. bindings and conns are guarded by the front's lock. conns is replaced when a server
	// starts after the group had none.
	bindings []*Binding
	conns    *connSet
	// current is the first of bindings. If bindings is empty, it is the last server that ran.
	current atomic.Pointer[Binding]
}

// Server returns the server of the configuration that Caddy currently runs.
func (g *Group) Server() *caddyhttp.Server { return g.current.Load().Server }

// Binding returns the current server together with its settings for connections.
func (g *Group) Binding() *Binding { return g.current.Load() }

// join adds a server and returns the connSet for its connections. The callers of join, leave and choose hold the
// front's lock.
func (g *Group) join(s *Binding) *connSet {
	if g.conns == nil || g.conns.leaving.Load() {
		g.conns = newConnSet(g)
	}
	g.bindings = append(g.bindings, s)
	g.choose()
	return g.conns
}

func (g *Group) leave(s *Binding) {
	g.bindings = slices.DeleteFunc(g.bindings, func(o *Binding) bool { return o == s })
	if len(g.bindings) > 0 {
		g.choose()
		return
	}
	for _, c := range g.opened() {
		c.release()
	}
	g.conns.drain(s.Context)
}

// choose directs requests to the oldest server. A server of a configuration that Caddy rejects therefore gets no
// requests, and the next server gets them only after its whole configuration has started.
func (g *Group) choose() {
	s := g.bindings[0]
	if g.current.Swap(s) == s {
		return
	}
	for _, c := range g.opened() {
		c.config.Store(s.listenerConfig(c.Addr(), c.conns.port))
	}
}

// opened returns the group's claims that Open has made.
func (g *Group) opened() (opened []*claim) {
	for _, c := range g.front.live {
		if c.group == g {
			opened = append(opened, c)
		}
	}
	return opened
}

// tlsConfig returns a configuration that uses the current server's TLS settings for each handshake.
func (g *Group) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return g.current.Load().configForClient(hello)
		},
		GetEncryptedClientHelloKeys: func(hello *tls.ClientHelloInfo) ([]tls.EncryptedClientHelloKey, error) {
			if get := g.current.Load().tls.GetEncryptedClientHelloKeys; get != nil {
				return get(hello)
			}
			return nil, nil
		},
	}
}
