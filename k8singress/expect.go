package k8singress

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// expecting is an answer to a request with a body of which nobody knows whether all of it is going to be read, or sent. A final
// answer before the body has ended has to end the connection, because nobody could tell where the next request begins. net/http
// would do so itself, but Caddy has put a reader of its own in place of those that it looks for. So it would wait for a body that may
// never come before it sends the answer.
type expecting struct {
	*caddyhttp.ResponseWriterWrapper
	body *expected
	// closing says that the connection is going to end.
	closing bool
}

// expected is the body.
type expected struct {
	io.ReadCloser
	ended atomic.Bool
}

func (e *expected) Read(b []byte) (int, error) {
	n, err := e.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) {
		e.ended.Store(true)
	}
	return n, err
}

// expect returns w, or what answers in its place.
func expect(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if r.ProtoMajor != 1 || r.ContentLength == 0 || r.Body == nil {
		return w
	}
	body := &expected{ReadCloser: r.Body}
	r.Body = body
	return &expecting{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, body: body}
}

// WriteHeader ends the connection if the body has not come.
func (e *expecting) WriteHeader(status int) {
	if status >= http.StatusOK {
		e.closeUnread()
	}
	e.ResponseWriter.WriteHeader(status)
}

// Write is for those who leave WriteHeader out.
func (e *expecting) Write(b []byte) (int, error) {
	e.closeUnread()
	return e.ResponseWriter.Write(b)
}

// ReadFrom keeps io.Copy to Write.
func (e *expecting) ReadFrom(from io.Reader) (int64, error) {
	e.closeUnread()
	return e.ResponseWriterWrapper.ReadFrom(from)
}

// closeUnread has no effect once the head has been written.
func (e *expecting) closeUnread() {
	if e.body.ended.Load() || e.closing {
		return
	}
	e.closing = true
	e.Header().Set("Connection", "close")
	w := e.ResponseWriter
	for {
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = inner.Unwrap()
	}
	// A body over its limit is the one way to say so to net/http. It gives the client the time then to see the answer before
	// the connection ends, although what it sends is not read.
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}

// linger is how long a body is still read that nobody has asked for, so that a client which sends it can see its answer.
const linger = time.Second

// endExpecting is for the end of the request: an answer may still be to come from who called us.
func endExpecting(w http.ResponseWriter, err error) error {
	e, ok := w.(*expecting)
	if !ok || e.body.ended.Load() {
		return err
	}
	if err != nil {
		e.closeUnread()
	}
	// net/http reads before it closes, and waits for as long as it may.
	_ = http.NewResponseController(e.ResponseWriter).SetReadDeadline(time.Now().Add(linger))
	return err
}

var _ http.ResponseWriter = (*expecting)(nil)
