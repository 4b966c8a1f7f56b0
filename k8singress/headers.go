package k8singress

import (
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/ir"
)

func init() {
	caddy.RegisterModule(new(RequestHeaders))
	caddy.RegisterModule(new(ResponseHeaders))
}

// headerChanges are data: unlike those of Caddy's headers handler, they have no placeholders.
type headerChanges struct{ ir.HeaderChanges }

// Provision refuses what cannot stand in a header.
func (c *headerChanges) Provision(caddy.Context) error {
	fields := slices.Concat(c.Set, c.Add)
	for _, name := range c.Remove {
		fields = append(fields, ir.Header{Name: name})
	}
	for _, f := range fields {
		if !httpguts.ValidHeaderFieldName(f.Name) || !httpguts.ValidHeaderFieldValue(f.Value) {
			return fmt.Errorf("the header field %q: %q has characters in it that no header may have", f.Name, f.Value)
		}
	}
	return nil
}

func (c *headerChanges) apply(h http.Header) {
	for _, name := range c.Remove {
		h.Del(name)
	}
	for _, f := range c.Set {
		h.Set(f.Name, f.Value)
	}
	for _, f := range c.Add {
		h.Add(f.Name, f.Value)
	}
}

// RequestHeaders changes the header fields that the backend gets.
type RequestHeaders struct{ headerChanges }

// CaddyModule returns the Caddy module information.
func (*RequestHeaders) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_request_headers", New: func() caddy.Module { return new(RequestHeaders) }}
}

// ServeHTTP changes the request and hands it on.
func (h *RequestHeaders) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	h.apply(r.Header)
	return next.ServeHTTP(w, r)
}

// ResponseHeaders changes the header fields that the client gets from the handlers behind it. Answers to errors that they return
// are Caddy's, and stay as they are.
type ResponseHeaders struct{ headerChanges }

// CaddyModule returns the Caddy module information.
func (*ResponseHeaders) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_response_headers", New: func() caddy.Module { return new(ResponseHeaders) }}
}

// ServeHTTP hands the request on, and changes the head of the answer.
func (h *ResponseHeaders) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return next.ServeHTTP(&changing{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, changes: &h.headerChanges}, r)
}

// changing changes the head of an answer when it is written.
type changing struct {
	*caddyhttp.ResponseWriterWrapper
	changes *headerChanges
	written bool
}

// WriteHeader leaves the heads of interim answers as they are.
func (w *changing) WriteHeader(status int) {
	if !w.written && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		w.written = true
		w.changes.apply(w.Header())
	}
	w.ResponseWriterWrapper.WriteHeader(status)
}

// Write writes the head first.
func (w *changing) Write(body []byte) (int, error) {
	w.writeHead()
	return w.ResponseWriterWrapper.Write(body)
}

// ReadFrom writes the head first.
func (w *changing) ReadFrom(body io.Reader) (int64, error) {
	w.writeHead()
	return w.ResponseWriterWrapper.ReadFrom(body)
}

// FlushError writes the head first.
func (w *changing) FlushError() error {
	w.writeHead()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *changing) writeHead() {
	if !w.written {
		w.WriteHeader(http.StatusOK)
	}
}

var (
	_ caddyhttp.MiddlewareHandler = (*RequestHeaders)(nil)
	_ caddyhttp.MiddlewareHandler = (*ResponseHeaders)(nil)
)
