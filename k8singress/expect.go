package k8singress

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"golang.org/x/net/http/httpguts"
)

// expecting is the answer to a client that waits for "100 Continue" before it sends its body. A final answer before the body
// has to end the connection: whether the client still sends the body is unknown, so that nobody can tell where its next
// request begins. net/http would do so itself, but Caddy has put a reader of its own in place of the one that it looks for,
// and it would wait for a body that never comes before it sends the answer.
type expecting struct {
	*caddyhttp.ResponseWriterWrapper
	body *expected
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

// expect returns w, or what answers in its place if the client waits.
func expect(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if r.ContentLength == 0 || !httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue") {
		return w
	}
	return early(w, r)
}

// early is expect for an answer that may begin before the body has ended: net/http would keep it until it has read a part of
// the body itself.
func early(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if r.ProtoMajor != 1 || r.ContentLength == 0 || r.Body == nil {
		return w
	}
	body := &expected{ReadCloser: r.Body}
	r.Body = body
	return &expecting{&caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, body}
}

// WriteHeader ends the connection if the body has not come.
func (e *expecting) WriteHeader(status int) {
	if status >= http.StatusOK {
		e.settle()
	}
	e.ResponseWriter.WriteHeader(status)
}

// Write is for those who leave WriteHeader out.
func (e *expecting) Write(b []byte) (int, error) {
	e.settle()
	return e.ResponseWriter.Write(b)
}

// ReadFrom keeps io.Copy to Write.
func (e *expecting) ReadFrom(from io.Reader) (int64, error) {
	e.settle()
	return e.ResponseWriterWrapper.ReadFrom(from)
}

// settle has no effect once the head has been written.
func (e *expecting) settle() {
	if !e.body.ended.Load() {
		e.Header().Set("Connection", "close")
	}
}

// linger is how long a body is still read that nobody has asked for, so that a client which sends it can see its answer.
const linger = time.Second

// settled is for the end of the request: an answer may still be to come from who called us.
func settled(w http.ResponseWriter, err error) error {
	e, ok := w.(*expecting)
	if !ok || e.body.ended.Load() {
		return err
	}
	if err != nil {
		e.settle()
	}
	// net/http reads before it closes, and waits for as long as it may.
	_ = http.NewResponseController(e.ResponseWriter).SetReadDeadline(time.Now().Add(linger))
	return err
}

var _ http.ResponseWriter = (*expecting)(nil)
