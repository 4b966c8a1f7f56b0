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

// expecting wraps the writer of a response to an HTTP/1.1 request with a body. If the response is sent before the body
// was read completely, the connection must be closed, because the server does not know where the next request begins.
// net/http would do this itself, but it does not recognize the reader that Caddy has put around the body. Without this
// wrapper, net/http would delay the response and wait for the rest of a body that may never arrive.
type expecting struct {
	*caddyhttp.ResponseWriterWrapper
	body *expected
	// closing is true once net/http was told to close the connection.
	closing bool
}

// expected wraps the body of a request. ended is true once the body was read completely.
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

// expect returns a wrapper for w if the request is an HTTP/1 request with a body, and w otherwise.
func expect(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if r.ProtoMajor != 1 || r.ContentLength == 0 || r.Body == nil {
		return w
	}
	body := &expected{ReadCloser: r.Body}
	r.Body = body
	return &expecting{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, body: body}
}

// WriteHeader writes the head of the response. If the request body was not read completely, the connection is closed
// after the response.
func (e *expecting) WriteHeader(status int) {
	if status >= http.StatusOK {
		e.closeUnread()
	}
	e.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the response body. Like WriteHeader, it calls closeUnread, because handlers may call Write
// without WriteHeader.
func (e *expecting) Write(b []byte) (int, error) {
	e.closeUnread()
	return e.ResponseWriter.Write(b)
}

// ReadFrom is called by io.Copy instead of Write. It also calls closeUnread.
func (e *expecting) ReadFrom(from io.Reader) (int64, error) {
	e.closeUnread()
	return e.ResponseWriterWrapper.ReadFrom(from)
}

// closeUnread makes net/http close the connection after the response if the request body was not read completely. It
// has no effect once the head of the response has been written.
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
	// Exceeding the limit of a MaxBytesReader is the only way to make net/http close the connection without first
	// waiting for the rest of the body. net/http then gives the client time to read the response before it closes the
	// connection.
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}

// linger is how long the rest of a request body is read and discarded after the response, so that a client that is
// still sending the body can read the response.
const linger = time.Second

// endExpecting must be called when the handler has returned, and before an error response is written. err is the error
// of the handler, or nil. It is returned unchanged. If the request body was not read completely, endExpecting limits
// the time for discarding the rest. If err is not nil, the connection is then also closed after the response.
func endExpecting(w http.ResponseWriter, err error) error {
	e, ok := w.(*expecting)
	if !ok || e.body.ended.Load() {
		return err
	}
	if err != nil {
		e.closeUnread()
	}
	// net/http reads and discards the rest of the body before it closes the connection. The deadline limits how long
	// this takes.
	_ = http.NewResponseController(e.ResponseWriter).SetReadDeadline(time.Now().Add(linger))
	return err
}

var _ http.ResponseWriter = (*expecting)(nil)
