package live

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// streams are the requests of one route that may last for ever: upgraded connections and streams of events. They stay with
// the route through all its changes.
type streams struct {
	// all counts those of every route.
	all  *crowd
	mu   sync.Mutex
	open map[*context.CancelFunc]struct{}
}

// isStream says whether a request asks for something that need not end.
func isStream(r *http.Request) bool {
	if _, ok := r.Header["Upgrade"]; ok || r.Method == http.MethodConnect {
		return true
	}
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// follow returns the request with a context that close ends, and what to call when it has been served.
func (s *streams) follow(r *http.Request) (*http.Request, func()) {
	ctx, cancel := context.WithCancel(r.Context())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*context.CancelFunc]struct{}{}
	}
	s.open[&cancel] = struct{}{}
	s.all.add(1)
	return r.WithContext(ctx), func() {
		s.mu.Lock()
		delete(s.open, &cancel)
		s.mu.Unlock()
		cancel()
		s.all.add(-1)
	}
}

// close ends the streams that are open.
func (s *streams) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for cancel := range s.open {
		(*cancel)()
	}
}

// inherit gives the routes of a host the streams of those before with the same path. It returns the streams of the routes
// that have gone.
func (h *host) inherit(before *host) []*streams {
	if before == nil {
		return nil
	}
	type key struct{ kind, path string }
	gone := make(map[key]*streams, len(before.all))
	for _, r := range before.all {
		gone[key{r.Type, r.Path}] = r.streams
	}
	if h != nil && h.admitsLike(before) {
		for _, r := range h.all {
			if s, ok := gone[key{r.Type, r.Path}]; ok {
				r.streams = s
				delete(gone, key{r.Type, r.Path})
			}
		}
	}
	list := make([]*streams, 0, len(gone))
	for _, s := range gone {
		list = append(list, s)
	}
	return list
}

// settled is when a request that found its route before that was gone has begun its stream.
const settled = 10 * time.Second

// drain closes streams of routes that have gone when their time is over. That may be a year: routes without streams are not
// remembered for so long.
func (t *Table) drain(gone []*streams) {
	if len(gone) == 0 {
		return
	}
	first := min(t.drainTime(), settled)
	rest := t.drainTime() - first
	time.AfterFunc(first, func() {
		if gone = slices.DeleteFunc(gone, (*streams).none); len(gone) == 0 {
			return
		}
		time.AfterFunc(rest, func() {
			for _, s := range gone {
				s.close()
			}
		})
	})
}

func (s *streams) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) == 0
}

// AwaitStreams waits until no stream is under way, or ctx ends.
func (t *Table) AwaitStreams(ctx context.Context) {
	select {
	case <-t.open.gone():
	case <-ctx.Done():
	}
}

// crowd counts what comes and goes. Unlike a sync.WaitGroup it may be waited for while more comes.
type crowd struct {
	mu sync.Mutex
	n  int
	// empty is closed when nobody is there any more. It is nil while nobody waits.
	empty chan struct{}
}

func (c *crowd) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// gone returns a channel that is closed as soon as nobody is there.
func (c *crowd) gone() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if c.empty == nil {
		c.empty = make(chan struct{})
	}
	return c.empty
}
