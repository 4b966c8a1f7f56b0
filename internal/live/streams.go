package live

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// streams are the requests of one route that may last for ever: upgraded connections and streams of events. They stay with
// the route through all its changes.
type streams struct {
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
	return r.WithContext(ctx), func() {
		s.mu.Lock()
		delete(s.open, &cancel)
		s.mu.Unlock()
		cancel()
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
	if h != nil {
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

// drain closes streams of routes that have gone when their time is over.
func (t *Table) drain(gone []*streams) {
	if len(gone) == 0 {
		return
	}
	time.AfterFunc(t.drainTime(), func() {
		for _, s := range gone {
			s.close()
		}
	})
}
