package front

import (
	"crypto/tls"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Group contains the servers with the same name in successive configurations of Caddy, and holds their connections.
type Group struct {
	front *Front
	name  string
	// bindings are the running servers, sorted by the time of their start. During a reload there are two, because Caddy
	// starts the new configuration before it stops the old one. conns holds the connections of these servers. It is
	// replaced when a server starts while no other server of the group is running. bindings and conns are guarded by
	// Front.mu.
	bindings []*Binding
	conns    *connSet
	// current is the server that handles requests: the first element of bindings, or the server that stopped last if
	// bindings is empty.
	current atomic.Pointer[Binding]
}

// Server returns the server of the configuration that Caddy currently runs.
func (g *Group) Server() *caddyhttp.Server { return g.current.Load().Server }

// Binding returns the current server together with its settings for connections.
func (g *Group) Binding() *Binding { return g.current.Load() }

// join adds a server to the group and returns the connSet for its connections. The callers of join, leave and choose
// must hold Front.mu.
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

// choose makes the oldest running server handle the requests of the group. Caddy stops the oldest server only after the
// whole next configuration has started, so a server of a configuration that fails to start gets no requests.
func (g *Group) choose() {
	s := g.bindings[0]
	if g.current.Swap(s) == s {
		return
	}
	for _, c := range g.opened() {
		m := s.listenerConfig(c.Addr(), c.conns.port)
		m.wrap(c.conns, c.Addr())
		c.config.Swap(m).unwrap()
	}
}

// g.opened() returns the claims of the addresses that Front.Open has opened for the servers of the group.
func (g *Group) opened() (opened []*claim) {
	for _, c := range g.front.live {
		if c.group == g {
			opened = append(opened, c)
		}
	}
	return opened
}

// tlsConfig returns a TLS configuration that uses the settings of the current server for each handshake.
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
