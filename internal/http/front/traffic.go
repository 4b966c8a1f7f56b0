package front

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/connlimit"
)

// traffic tracks the activity of a connection that net/http or http3 serves.
type traffic struct {
	front *Front
	place *connlimit.Place
	// requests is the number of requests so far.
	requests atomic.Int64
	// last is the time of the last activity, in nanoseconds since 1970: data was read or written, or the connection
	// became idle.
	last atomic.Int64
	// leaving is true if the next response must ask the client to close the connection.
	leaving atomic.Bool

	// users is the number of requests under way, plus one for the connection itself. The last user releases share,
	// which is nil until the first HTTP/2 or HTTP/3 request.
	users    atomic.Int64
	openOnce sync.Once
	share    *budget.Share
}

// begin is called when the connection starts, and leave when it ends.
func (t *traffic) begin(f *Front, place *connlimit.Place) {
	t.front, t.place = f, place
	t.users.Store(1)
	t.touch()
}

// touch records activity.
func (t *traffic) touch() { t.last.Store(time.Now().UnixNano()) }

// silent returns the time since the last activity.
func (t *traffic) silent() time.Duration { return time.Since(time.Unix(0, t.last.Load())) }

// state returns the state of the connection and the time since its last activity. waits is true if no request is under
// way.
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

// enter takes the memory of a request from the budget, until exit is called with the cost. It returns false if there is
// no room for the request.
func (t *traffic) enter(r *http.Request) (cost int64, ok bool) {
	t.touch()
	if r.ProtoMajor < 2 || !t.use() {
		// An HTTP/1.1 connection has one request at a time, whose memory is included in the connection's. If the
		// connection has ended, its requests end soon.
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

// exit is called when a request ends.
func (t *traffic) exit(cost int64) {
	t.touch()
	if cost > 0 {
		t.share.Give(cost)
		t.leave()
	}
}

// use adds a user. It returns false if the last user has left already.
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

// leave removes a user.
func (t *traffic) leave() {
	if t.users.Add(-1) == 0 && t.share != nil {
		t.share.Leave()
	}
}

// answer passes a request to the current server, or refuses it if there is no room.
func (t *traffic) answer(w http.ResponseWriter, r *http.Request, s *Binding, limits *Limits, port uint16) {
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
	if s.answerAt(port) == nil {
		t.front.handedOver(s.Reason)
		s.Server.ServeHTTP(w, r)
		return
	}
	s.answerNetHTTP(w, r, limits, port)
}

// touchingWriter records activity for each part of a response that is written.
type touchingWriter struct {
	caddyhttp.ResponseWriterWrapper
	traffic *traffic
}

func (w *touchingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.traffic.touch()
	return n, err
}

// ReadFrom copies in parts, so that each part is recorded as activity.
func (w *touchingWriter) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, r)
}

// touchingBody records activity for each part of a request body that is read.
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

// trafficOf returns the traffic of the connection on which a request arrived.
func trafficOf(ctx context.Context) *traffic {
	return ctx.Value(trafficKey{}).(*traffic)
}
