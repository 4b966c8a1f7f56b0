package k8singress

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
)

// errorResponse is in the context of each request to a server of the controller with error routes. It records a failed
// request after Caddy's error routes have responded, because only then are the status and the size known.
type errorResponse struct {
	caddyhttp.ResponseWriterWrapper
	isHead bool
	status int
	sent   int64
	// record records the request in the access log and the metrics. It is nil if the request has not failed.
	record func()
}

func newErrorResponse(w http.ResponseWriter, r *http.Request) *errorResponse {
	return &errorResponse{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w},
		isHead: r.Method == http.MethodHead}
}

// errorResponseKey is the key of the *errorResponse in the context of a request.
type errorResponseKey struct{}

// accountErrorRoutes returns a handler that lets server, a Caddy server with error routes, handle requests. The server
// must have no access log of its own, because the fields about an Ingress must be added before the server writes its
// line.
func accountErrorRoutes(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := newErrorResponse(w, r)
		defer func() {
			if e.record != nil {
				e.record()
			}
		}()
		server.ServeHTTP(e, r.WithContext(context.WithValue(r.Context(), errorResponseKey{}, e)))
		// As in net/http, the status is 200 if the handlers write nothing.
		e.count(0)
	})
}

// errorResponseOf returns the errorResponse in the context of a request, or nil.
func errorResponseOf(r *message.Request) *errorResponse {
	e, _ := r.Context().Value(errorResponseKey{}).(*errorResponse)
	return e
}

// postpone makes e record a failed request when the error routes have responded.
func (e *errorResponse) postpone(table *live.Table, x *exchange.Exchange, began time.Time, known bool) {
	x.Retained = true
	e.record = func() {
		if e.status > 0 {
			x.Status = e.status
		}
		response := &message.Response{Status: x.Status, Length: -1, Fields: message.FieldsOf(e.Header())}
		x.Writer.(announcer).Answered(response, e.sent)
		account(table, x, began, known)
	}
}

// WriteHeader writes the head of a response, and keeps its status.
func (e *errorResponse) WriteHeader(status int) {
	if e.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		e.status = status
	}
	e.ResponseWriterWrapper.WriteHeader(status)
}

// FlushError sends the response as far as it was written. As in net/http, the status is 200 if WriteHeader was not
// called before. http.ResponseController calls it.
func (e *errorResponse) FlushError() error {
	err := http.NewResponseController(e.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		e.count(0)
	}
	return err
}

// Write writes a part of the body, and counts its bytes.
func (e *errorResponse) Write(part []byte) (int, error) {
	n, err := e.ResponseWriterWrapper.Write(part)
	e.count(int64(n))
	return n, err
}

// ReadFrom copies the body from source, and counts its bytes.
func (e *errorResponse) ReadFrom(source io.Reader) (int64, error) {
	n, err := e.ResponseWriterWrapper.ReadFrom(source)
	e.count(n)
	return n, err
}

// count is called after n bytes of the body were written, which may be none.
func (e *errorResponse) count(n int64) {
	if e.status == 0 {
		e.status = http.StatusOK
	}
	if !e.isHead {
		e.sent += n
	}
}
