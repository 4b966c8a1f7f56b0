package k8singress

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/control/engine"
)

// succession holds the apps that have started and not stopped, in start order. Caddy starts the apps of a new
// configuration before it stops the old ones. If a new app fails, Caddy stops the new apps and keeps the old ones. So
// the first app in the list belongs to the configuration that Caddy runs. The next one has no effect until the first
// has stopped, and a configuration that fails changes nothing.
type succession struct {
	mu   sync.Mutex
	apps []*App
	head atomic.Pointer[engine.Engine]
}

// started holds the apps of this process. There is one list because Caddy runs one configuration at a time.
var started succession

// engine returns the engine of the running configuration, or nil. The admin routes use it, because Caddy creates them
// before the app.
func (s *succession) engine() *engine.Engine { return s.head.Load() }

func (s *succession) join(a *App) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apps = append(s.apps, a)
	if len(s.apps) == 1 {
		s.follow()
	}
}

// leave may be called more than once, and for an app that has not joined.
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

// follow makes the first app the active one.
func (s *succession) follow() {
	if len(s.apps) == 0 {
		s.head.Store(nil)
		return
	}
	a := s.apps[0]
	s.head.Store(a.engine)
	a.engine.Adopt(a.ctx, a.Config, a.Live)
}
