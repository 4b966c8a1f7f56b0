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
	// servings are the running servers, in the order in which they started: Caddy starts the new configuration before
	// it stops the old one. servings and cohort are guarded by the front's lock. cohort is replaced when a server
	// starts after the group had none.
	servings []*Serving
	cohort   *cohort
	// current is the first of servings. If servings is empty, it is the last server that ran.
	current atomic.Pointer[Serving]
}

// Server returns the server of the configuration that Caddy currently runs.
func (g *Group) Server() *caddyhttp.Server { return g.current.Load().Server }

// Serving returns the current server together with its settings for connections.
func (g *Group) Serving() *Serving { return g.current.Load() }

// join adds a server and returns the cohort for its connections. The callers of join, leave and choose hold the front's
// lock.
func (g *Group) join(s *Serving) *cohort {
	if g.cohort == nil || g.cohort.leaving.Load() {
		g.cohort = newCohort(g)
	}
	g.servings = append(g.servings, s)
	g.choose()
	return g.cohort
}

func (g *Group) leave(s *Serving) {
	g.servings = slices.DeleteFunc(g.servings, func(o *Serving) bool { return o == s })
	if len(g.servings) > 0 {
		g.choose()
		return
	}
	for _, c := range g.opened() {
		c.release()
	}
	g.cohort.drain(s.Context)
}

// choose directs requests to the oldest server. A server of a configuration that Caddy rejects therefore gets no
// requests, and the next server gets them only after its whole configuration has started.
func (g *Group) choose() {
	s := g.servings[0]
	if g.current.Swap(s) == s {
		return
	}
	for _, c := range g.opened() {
		c.manner.Store(s.besideAt(c.Addr(), c.cohort.port))
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
