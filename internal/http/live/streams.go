package live

import (
	"context"
	"crypto/tls"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// streams holds the open streams of one route. A stream is a request that may never end, such as a WebSocket connection
// or an event stream. If a new version of the route accepts the same clients as the old version, the streams continue.
type streams struct {
	// all counts the open streams of all routes.
	all  *drainGroup
	mu   sync.Mutex
	open map[*context.CancelFunc]stream
}

// stream describes one open stream, such as a WebSocket connection.
type stream struct {
	// of is the digest of the Caddy configuration on which the handler chain depended when the stream started.
	of *configDigest
	// connection is the TLS state of the client's connection. It is nil without TLS.
	connection *tls.ConnectionState
	// anyClient is true if the stream does not need a client certificate, although the host requires client
	// certificates.
	anyClient bool
	// began is when the request entered its handler chain, before the client was authenticated.
	began time.Time
}

// isStream reports whether the response to a request may never end.
func isStream(r *message.Request) bool {
	return r.Fields.Has(message.Upgrade) || strings.Contains(r.Fields.Get(message.Accept), "text/event-stream")
}

// isCall reports whether a request is a gRPC call. Most calls are short, but any call may stay open for a long time.
func isCall(r *message.Request) bool {
	return strings.HasPrefix(r.Fields.Get(message.ContentType), "application/grpc")
}

// register registers a request as a stream of the route. It replaces the context of the request with a context that is
// canceled when the streams of the route must end. The caller must call ended when the request has been served. Unless
// the context was canceled by then, ended restores the previous context.
func (s *streams) register(r *message.Request, is stream) (ended func()) {
	before := r.Context()
	ctx, cancel := context.WithCancel(before)
	left := s.add(cancel, is)
	r.SetContext(ctx)
	return func() {
		if ctx.Err() == nil {
			// The stream has ended by itself. The request may go on, and its error is not an effect of cancel.
			r.SetContext(before)
		}
		cancel()
		left()
	}
}

// add registers a stream of the route. cancel is called if the stream must end, for example because the route was
// removed. The caller must call left when the stream has ended.
func (s *streams) add(cancel context.CancelFunc, is stream) (left func()) {
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

// snapshot returns a copy of the open streams.
func (s *streams) snapshot() map[*context.CancelFunc]stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.open)
}

// endingStreams selects open streams of a route that must be ended. If has is nil, all streams are selected, otherwise
// only the streams for which has returns true.
type endingStreams struct {
	streams *streams
	has     func(stream) bool
}

// close ends all selected streams.
func (e endingStreams) close() {
	for cancel, s := range e.streams.snapshot() {
		if e.has == nil || e.has(s) {
			(*cancel)()
		}
	}
}

// e.none() reports whether all selected streams have ended.
func (e endingStreams) none() bool {
	for _, s := range e.streams.snapshot() {
		if e.has == nil || e.has(s) {
			return false
		}
	}
	return true
}

// keepStreams moves open streams from the previous version of the host (before) to h. A stream is moved if h has a
// route with the same path that accepts the same clients. The other streams are returned, and the caller must end them.
// h is nil if the host was removed. before is nil if the host is new.
func (h *host) keepStreams(before *host) []endingStreams {
	if before == nil {
		return nil
	}
	type key struct{ kind, path, access string }
	left := make(map[key]*streams, len(before.all))
	for _, r := range before.all {
		k := key{r.Type, r.Path, r.accessKey()}
		if _, ok := left[k]; !ok {
			// Other routes with the same key share these streams, or are never used because an earlier route has the
			// same path.
			left[k] = r.streams
		}
	}
	taken := make(map[key]bool, len(left))
	if h != nil && h.acceptsSameClients(before) {
		for _, r := range h.all {
			k := key{r.Type, r.Path, r.accessKey()}
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

// streamsOf selects the open streams that started before a change of the Caddy configuration, on routes whose handler
// chains the change affects. before maps these chains to the digest of the old configuration.
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

// registrationGrace is the maximum time between the routing of a request and its registration as a stream. A route that
// was removed may still get new streams during this time.
const registrationGrace = 10 * time.Second

// drain ends the streams in list after the drain time. The drain time may be very long, so routes without open streams
// are removed from the list earlier, to release their memory.
func (t *Table) drain(list []endingStreams) {
	if len(list) == 0 {
		return
	}
	first := min(t.DrainTime(), registrationGrace)
	rest := t.DrainTime() - first
	panics.AfterFunc("live/streams", first, func() {
		if list = shrinking.Trim(slices.DeleteFunc(list, endingStreams.none)); len(list) == 0 {
			return
		}
		panics.AfterFunc("live/streams", rest, func() {
			for _, e := range list {
				e.close()
			}
		})
	})
}

// AwaitStreams waits until no stream of any route is open, or until ctx is canceled.
func (t *Table) AwaitStreams(ctx context.Context) {
	select {
	case <-t.open.gone():
	case <-ctx.Done():
	}
}

// drainGroup is a counter with a channel to wait until the count is zero. Unlike with a sync.WaitGroup, the count may
// be increased from zero while goroutines wait.
type drainGroup struct {
	mu sync.Mutex
	n  int
	// empty is closed when the count becomes zero. It is nil if no caller waits.
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

// gone returns a channel that is closed when the count is zero.
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
