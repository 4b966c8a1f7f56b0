package k8singress

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/engine"
)

// succession holds the apps that have started and not ended, in the order of their starts. Caddy starts the apps of a new
// configuration before it stops those of the old one; should one of them fail, it ends the new ones instead, and goes on
// with the old. So it is the first app whose configuration Caddy runs. The one behind it counts for nothing until the
// first has stopped, and a configuration that fails has changed nothing.
type succession struct {
	mu   sync.Mutex
	apps []*App
	head atomic.Pointer[engine.Engine]
}

// started are the apps of this process: Caddy has one configuration at a time.
var started succession

// engine returns that of the running configuration, or nil. It is for the admin routes, which Caddy makes before the app.
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

// follow makes the first app the one that counts.
func (s *succession) follow() {
	if len(s.apps) == 0 {
		s.head.Store(nil)
		return
	}
	a := s.apps[0]
	s.head.Store(a.engine)
	a.engine.Adopt(a.ctx, a.Config, a.Live)
}
