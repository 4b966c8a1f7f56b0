package live

import (
	"context"
	"crypto/tls"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/panics"
)

// streams are the requests of one route that may last for ever: upgraded connections and streams of events. They stay with
// the route through all its changes but those of who gets in.
type streams struct {
	// all counts those of every route.
	all  *drainGroup
	mu   sync.Mutex
	open map[*context.CancelFunc]stream
}

// stream is what is remembered of one.
type stream struct {
	// of is what its chain took from the configuration.
	of *configDigest
	// connection is nil without TLS.
	connection *tls.ConnectionState
	// anybody says that it is let in whatever certificate it comes with.
	anybody bool
	// began is before it was asked who its client is.
	began time.Time
}

// isStream says whether a request asks for something that need not end.
func isStream(r *message.Request) bool {
	return r.Fields.Has(message.Upgrade) || strings.Contains(r.Fields.Get(message.Accept), "text/event-stream")
}

// isCall says whether a request is a call of gRPC. Most of them end soon, and any may be a stream.
func isCall(r *message.Request) bool {
	return strings.HasPrefix(r.Fields.Get(message.ContentType), "application/grpc")
}

// follow gives the request a context that ends with its streams, and returns what to call when it has been served.
func (s *streams) follow(r *message.Request, is stream) (ended func()) {
	ctx, cancel := context.WithCancel(r.Context())
	left := s.enter(cancel, is)
	r.SetContext(ctx)
	return func() {
		cancel()
		left()
	}
}

// enter has cancel called with the end of the streams, and returns what to call when the stream has ended.
func (s *streams) enter(cancel context.CancelFunc, is stream) (left func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*context.CancelFunc]stream{}
	}
	s.open[&cancel] = is
	s.all.add(1)
	return func() {
		s.mu.Lock()
		delete(s.open, &cancel)
		s.mu.Unlock()
		s.all.add(-1)
	}
}

// now returns those that are open.
func (s *streams) now() map[*context.CancelFunc]stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.open)
}

// endingStreams are streams that are to end: all of a route, or those that has, if it is not nil, says it of.
type endingStreams struct {
	streams *streams
	has     func(stream) bool
}

// close ends those that are open.
func (e endingStreams) close() {
	for cancel, s := range e.streams.now() {
		if e.has == nil || e.has(s) {
			(*cancel)()
		}
	}
}

// none says whether none is open.
func (e endingStreams) none() bool {
	for _, s := range e.streams.now() {
		if e.has == nil || e.has(s) {
			return false
		}
	}
	return true
}

// keepStreams gives the routes of a host the streams of those before with the same path, if they let in the same clients. It
// returns the streams that nobody has then.
func (h *host) keepStreams(before *host) []endingStreams {
	if before == nil {
		return nil
	}
	type key struct{ kind, path, access string }
	left := make(map[key]*streams, len(before.all))
	for _, r := range before.all {
		k := key{r.Type, r.Path, r.admits()}
		if _, ok := left[k]; !ok {
			// Others with the same key have the same streams, or no requests.
			left[k] = r.streams
		}
	}
	taken := make(map[key]bool, len(left))
	if h != nil && h.admitsLike(before) {
		for _, r := range h.all {
			k := key{r.Type, r.Path, r.admits()}
			if s, ok := left[k]; ok && r.refused() == nil {
				r.streams, taken[k] = s, true
			}
		}
	}
	list := h.inheritPassthrough(before)
	for k, s := range left {
		if !taken[k] {
			list = append(list, endingStreams{streams: s})
		}
	}
	return list
}

// streamsOf are the streams of chains that had these digests.
func (t *Table) streamsOf(before map[*chain]*configDigest) []endingStreams {
	var list []endingStreams
	if len(before) == 0 {
		return nil
	}
	t.allHosts(func(h *host) {
		for _, r := range h.all {
			for d := range r.destinations {
				if of, ok := before[d.chain]; ok {
					list = append(list, endingStreams{r.streams, func(s stream) bool { return s.of == of }})
				}
			}
		}
	})
	return list
}

// settled is when a request that found its route before that was gone has begun its stream.
const settled = 10 * time.Second

// drain ends streams when their time is over. That may be a year: routes without streams are not remembered for so long.
func (t *Table) drain(list []endingStreams) {
	if len(list) == 0 {
		return
	}
	first := min(t.DrainTime(), settled)
	rest := t.DrainTime() - first
	panics.AfterFunc("live/streams", first, func() {
		if list = slices.DeleteFunc(list, endingStreams.none); len(list) == 0 {
			return
		}
		panics.AfterFunc("live/streams", rest, func() {
			for _, e := range list {
				e.close()
			}
		})
	})
}

// AwaitStreams waits until no stream is under way, or ctx ends.
func (t *Table) AwaitStreams(ctx context.Context) {
	select {
	case <-t.open.gone():
	case <-ctx.Done():
	}
}

// drainGroup counts what comes and goes. Unlike a sync.WaitGroup it may be waited for while more comes.
type drainGroup struct {
	mu sync.Mutex
	n  int
	// empty is closed when the count is zero. It is nil while no caller waits.
	empty chan struct{}
}

func (c *drainGroup) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// gone returns a channel that is closed as soon as the count is zero.
func (c *drainGroup) gone() <-chan struct{} {
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
