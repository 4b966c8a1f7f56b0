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

// expecting wraps the response to a request whose body may not be read completely. If the final response is sent before
// the end of the body, the connection must be closed, because the server cannot tell where the next request begins.
// net/http would do this itself, but it does not recognize the reader that Caddy has put around the body. Without this
// wrapper, it would wait for a body that may never arrive before it sends the response.
type expecting struct {
	*caddyhttp.ResponseWriterWrapper
	body *expected
	// closing means that the connection will be closed.
	closing bool
}

// expected is the request body. It records whether the end has been read.
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

// expect returns w, or a wrapper for it if the request has a body.
func expect(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if r.ProtoMajor != 1 || r.ContentLength == 0 || r.Body == nil {
		return w
	}
	body := &expected{ReadCloser: r.Body}
	r.Body = body
	return &expecting{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, body: body}
}

// WriteHeader closes the connection if the body has not been read to its end.
func (e *expecting) WriteHeader(status int) {
	if status >= http.StatusOK {
		e.closeUnread()
	}
	e.ResponseWriter.WriteHeader(status)
}

// Write handles responses without a call of WriteHeader.
func (e *expecting) Write(b []byte) (int, error) {
	e.closeUnread()
	return e.ResponseWriter.Write(b)
}

// ReadFrom does the same as Write for io.Copy.
func (e *expecting) ReadFrom(from io.Reader) (int64, error) {
	e.closeUnread()
	return e.ResponseWriterWrapper.ReadFrom(from)
}

// closeUnread makes net/http close the connection after the response. It has no effect once the head has been written.
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
	// Exceeding the limit of a MaxBytesReader is the only way to make net/http do this. net/http then gives the client
	// time to read the response before it closes the connection.
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}

// linger is how long the rest of an unread body is still read, so that a client that is sending it can read the
// response.
const linger = time.Second

// endExpecting is called at the end of the request. If err is not nil, the caller writes the response after it.
func endExpecting(w http.ResponseWriter, err error) error {
	e, ok := w.(*expecting)
	if !ok || e.body.ended.Load() {
		return err
	}
	if err != nil {
		e.closeUnread()
	}
	// net/http reads the rest of the body before it closes the connection, so the deadline limits how long this may
	// take.
	_ = http.NewResponseController(e.ResponseWriter).SetReadDeadline(time.Now().Add(linger))
	return err
}

var _ http.ResponseWriter = (*expecting)(nil)
