package front

import (
	"crypto/tls"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Group has the connections of the servers of one name, over all configurations.
type Group struct {
	front *Front
	name  string
	// servings are the servers that run, in the order of their starts: Caddy starts a configuration before it stops the one before.
	// They belong to the lock of the front, as does cohort, which changes when the group had no server for a while.
	servings []*Serving
	cohort   *cohort
	// current is the first of servings, or, if there is none, the last one that there was.
	current atomic.Pointer[Serving]
}

// Server is the server of the configuration that Caddy runs.
func (g *Group) Server() *caddyhttp.Server { return g.current.Load().Server }

// Serving is that server, and how connections become requests for it.
func (g *Group) Serving() *Serving { return g.current.Load() }

// join, leave and choose are called with the lock of the front.
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

// choose has requests go to the oldest server. So one of a configuration that Caddy refuses gets none, and the next one gets them
// when all of its configuration has started.
func (g *Group) choose() {
	s := g.servings[0]
	if g.current.Swap(s) == s {
		return
	}
	for _, c := range g.opened() {
		c.manner.Store(s.besideAt(c.Addr(), c.cohort.port))
	}
}

// opened are the claims of Open.
func (g *Group) opened() (opened []*claim) {
	for _, c := range g.front.live {
		if c.group == g {
			opened = append(opened, c)
		}
	}
	return opened
}

// tlsConfig asks the server of the moment for each handshake.
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
