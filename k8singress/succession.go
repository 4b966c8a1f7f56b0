package k8singress

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/control/engine"
)

// succession is a list of the apps that were started and not stopped yet, in the order of their start. When Caddy loads
// a configuration, it starts the new apps before it stops the old ones. If a new app fails to start, Caddy stops the
// new apps and keeps the old ones. The first app in the list therefore belongs to the running configuration. The next
// app takes effect when the first one has stopped, so a configuration that fails to load changes nothing.
type succession struct {
	mu   sync.Mutex
	apps []*App
	head atomic.Pointer[engine.Engine]
}

// started lists the apps of this process that were started and not stopped yet. It is global because Caddy runs only
// one configuration at a time.
var started succession

// engine returns the engine of the running configuration, or nil if no configuration is running. It is used by the
// admin routes, which Caddy creates before the app.
func (s *succession) engine() *engine.Engine { return s.head.Load() }

func (s *succession) join(a *App) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apps = append(s.apps, a)
	if len(s.apps) == 1 {
		s.follow()
	}
}

// leave removes an app from the list of started apps. If it was the first app, the next app takes effect. leave does
// nothing if the app is not in the list.
func (s *succession) leave(a *App) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.apps, a)
	if i < 0 {
		return
	}
	s.apps = slices.Delete(s.apps, i, i+1)
	if i == 0 {
		s.follow()
	}
}

// follow makes the first app in the list take effect: from now on, the engine uses the configuration of this app. The
// caller must hold s.mu.
func (s *succession) follow() {
	if len(s.apps) == 0 {
		s.head.Store(nil)
		return
	}
	a := s.apps[0]
	s.head.Store(a.engine)
	a.engine.Events().Use(a.events)
	a.engine.TrustProxies(a.trustsProxies)
	a.engine.Adopt(a.ctx, a.config, a.Live)
}
