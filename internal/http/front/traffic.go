package front

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/connlimit"
)

// traffic tracks the activity of a connection that net/http or http3 serves.
type traffic struct {
	front *Front
	place *connlimit.Place
	// secured is the TLS state of a wrappedHTTP2, and nil for other connections.
	secured *tls.ConnectionState
	// requests is the number of requests on the connection so far.
	requests atomic.Int64
	// last is the time of the last activity, in nanoseconds since 1970. Activity means that a request starts or ends,
	// or that data is read or written.
	last atomic.Int64
	// leaving is true if the next response must ask the client to close the connection.
	leaving atomic.Bool

	// share is the connection's share of the memory budget. It is nil until the first HTTP/2 or HTTP/3 request. users
	// is the reference count of share: the number of requests in progress, plus one for the connection itself. When
	// users reaches zero, share is released.
	users    atomic.Int64
	openOnce sync.Once
	share    *budget.Share
}

// begin must be called when the connection starts, and the method leave when the connection ends.
func (t *traffic) begin(f *Front, place *connlimit.Place) {
	t.front, t.place = f, place
	t.users.Store(1)
	t.touch()
}

// touch sets the time of the last activity to the current time.
func (t *traffic) touch() { t.last.Store(time.Now().UnixNano()) }

// silent returns the time since the last activity.
func (t *traffic) silent() time.Duration { return time.Since(time.Unix(0, t.last.Load())) }

// state returns the state of the connection and the time since its last activity. The parameter waits must be true if
// no request is in progress.
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

// enter must be called when a request starts. It takes the estimated memory of the request from the memory budget and
// returns it as cost, in bytes, to be passed to exit. It returns false if the budget is exhausted.
func (t *traffic) enter(r *http.Request) (cost int64, ok bool) {
	t.touch()
	if r.ProtoMajor < 2 || !t.use() {
		// No memory is taken from the budget. The memory of HTTP/1.1 requests is counted with their connections,
		// because an HTTP/1.1 connection has only one request at a time. If t.use returns false, the connection has
		// already ended, and its requests will end soon.
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

// exit must be called when a request ends. cost is the result of enter.
func (t *traffic) exit(cost int64) {
	t.touch()
	if cost > 0 {
		t.share.Give(cost)
		t.leave()
	}
}

// use increments t.users, the reference count of t.share. It returns false if t.users is already zero, because the
// connection has ended.
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

// leave decrements t.users, the reference count of t.share. When the count reaches zero, leave releases the share.
func (t *traffic) leave() {
	if t.users.Add(-1) == 0 && t.share != nil {
		t.share.Leave()
	}
}

// answer passes a request to the current server, or sends a 503 response if the memory budget is exhausted.
func (t *traffic) answer(w http.ResponseWriter, r *http.Request, s *Binding, l *limits.Limits, port uint16) {
	cost, ok := t.enter(r)
	if !ok {
		s.refuse(w, r, l, port)
		return
	}
	defer t.exit(cost)
	w = &touchingWriter{caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, t}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &touchingBody{r.Body, t}
	}
	if s.answerAt(port) == nil {
		t.front.handedOver(s.Reason)
		s.ServeByCaddy(w, r)
		return
	}
	s.answerNetHTTP(w, r, l, port)
}

// touchingWriter is an http.ResponseWriter that updates the time of the connection's last activity when it writes a
// part of a response.
type touchingWriter struct {
	caddyhttp.ResponseWriterWrapper
	traffic *traffic
}

func (w *touchingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.traffic.touch()
	return n, err
}

// ReadFrom copies the response from r in several parts. It updates the time of the connection's last activity for each
// part.
func (w *touchingWriter) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, r)
}

// touchingBody is a request body that updates the time of the connection's last activity when a part of the body is
// read.
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
