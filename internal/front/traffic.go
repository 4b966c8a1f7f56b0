package front

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/connlimit"
)

// traffic is what happens on a connection that net/http or http3 serves.
type traffic struct {
	front *Front
	place *connlimit.Place
	// requests is how many requests there have been.
	requests atomic.Int64
	// last is when a byte of a request or of an answer came or went, or when the connection began to wait, in
	// nanoseconds since 1970.
	last atomic.Int64
	// leaving says that the client is asked to leave with the next answer.
	leaving atomic.Bool

	// users are the connection and its requests: the last one leaves share, which is nil before the first request that
	// counts.
	users    atomic.Int64
	openOnce sync.Once
	share    *budget.Share
}

// begin is called when the connection begins, and leave when it ends.
func (t *traffic) begin(f *Front, place *connlimit.Place) {
	t.front, t.place = f, place
	t.users.Store(1)
	t.touch()
}

// touch notes that something has happened.
func (t *traffic) touch() { t.last.Store(time.Now().UnixNano()) }

// silent returns for how long nothing has happened.
func (t *traffic) silent() time.Duration { return time.Since(time.Unix(0, t.last.Load())) }

// state returns what the connection does, and for how long it has been silent. waits says that it has no request.
func (t *traffic) state(waits bool) (connlimit.State, time.Duration) {
	silent := t.silent()
	switch {
	case waits:
		return connlimit.Idle, silent
	case silent >= connlimit.StallTime:
		return connlimit.Stalled, silent
	}
	return connlimit.Busy, silent
}

// enter counts a request, until exit. Without room for it, it returns false.
func (t *traffic) enter(r *http.Request) (cost int64, ok bool) {
	t.touch()
	if r.ProtoMajor < 2 || !t.use() {
		// A connection of HTTP/1.1 has one request, which is counted with it. The requests of a connection that has
		// ended are over soon.
		return 0, true
	}
	t.openOnce.Do(func() { t.share = t.front.requests.open(t.place.Address()) })
	cost = costOf(r)
	if t.share.Take(cost) {
		return cost, true
	}
	t.leave()
	return 0, false
}

// exit is the end of a request.
func (t *traffic) exit(cost int64) {
	t.touch()
	if cost > 0 {
		t.share.Give(cost)
		t.leave()
	}
}

// use adds a user. It returns false if there is none any more.
func (t *traffic) use() bool {
	for {
		n := t.users.Load()
		if n == 0 {
			return false
		}
		if t.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave is the end of a user.
func (t *traffic) leave() {
	if t.users.Add(-1) == 0 && t.share != nil {
		t.share.Leave()
	}
}

// answer answers a request by the server of the moment, if there is room for it.
func (t *traffic) answer(w http.ResponseWriter, r *http.Request, s *Serving, limits *Limits, port uint16) {
	cost, ok := t.enter(r)
	if !ok {
		t.front.refuse(w, r, limits, port)
		return
	}
	defer t.exit(cost)
	w = &touchingWriter{caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, t}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &touchingBody{r.Body, t}
	}
	if s.answering(port) == nil {
		t.front.handedOver(s.Reason)
		s.Server.ServeHTTP(w, r)
		return
	}
	s.answer(w, r, limits, port)
}

// touchingWriter notes when a part of an answer goes out.
type touchingWriter struct {
	caddyhttp.ResponseWriterWrapper
	traffic *traffic
}

func (w *touchingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.traffic.touch()
	return n, err
}

// ReadFrom notes each part.
func (w *touchingWriter) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, r)
}

// touchingBody notes when a part of a request's body comes in.
type touchingBody struct {
	io.ReadCloser
	traffic *traffic
}

func (b *touchingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.traffic.touch()
	}
	return n, err
}

type trafficKey struct{}

// trafficOf returns the traffic of the connection that a request came by.
func trafficOf(ctx context.Context) *traffic {
	return ctx.Value(trafficKey{}).(*traffic)
}
