package k8singress

import (
	"errors"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/tracing"
)

func init() { caddy.RegisterModule(new(Handler)) }

// Handler serves requests according to the Ingresses. A request for a host or path that no Ingress defines gets 404.
// All requests get 503 until the Ingresses are loaded for the first time.
type Handler struct {
	// PassThru forwards requests that match no Ingress to the next handler, instead of responding with 404.
	PassThru bool `json:"pass_thru,omitempty"`

	table *live.Table
	// ours is true if the controller created the server, and false if the server belongs to a site in the Caddyfile.
	ours bool
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress", New: func() caddy.Module { return new(Handler) }}
}

// Provision looks up the routing table of the running engine.
func (h *Handler) Provision(ctx caddy.Context) error {
	if insideChain(ctx) {
		return errors.New("the k8singress handler cannot be part of a chain, because requests would loop")
	}
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	h.table = app.engine.Table()
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		h.ours = front.Process().Listens(server)
	}
	recordShutdown(ctx, app)
	return nil
}

// ServeHTTP runs the handler chain of the matching Ingress path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	w = expect(w, r)
	return endExpecting(w, h.serve(w, r, next))
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	writer := message.NewHTTPWriter(w, r)
	request := &message.Request{Names: limits.NamesOf(&h.table.Global().Connections)}
	defer h.limitPause(r, request)()
	x := &exchange.Exchange{
		Request: request, Writer: writer, ForAllResponses: h.table.Always(false), PassesOn: h.PassThru,
		Clients: h.table.Clients(), Global: h.table.Global(),
	}
	x.FromHTTP(r)
	requests.begun.Add(1)
	defer requests.ended.Add(1)
	began := time.Now()
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		x.Target = message.TargetOf(&original)
	}
	delete(w.Header(), "Server")
	added := h.demandTLS(w, r)
	if caddy.Exiting() {
		sendAway(w, r)
	}
	outcome, err := serve(h.table, x)
	switch {
	case outcome == live.Probe:
		err = serveProbe(h.table, x)
	case outcome == live.NoHost && !h.PassThru:
		err = exchange.Fail(http.StatusNotFound, errNoHost)
	}
	tracing.End(x, err)
	if outcome != live.NoHost || !h.PassThru {
		account(h.table, x, began, outcome != live.NoHost, err)
		markAccounted(r.Context())
	}
	switch {
	case outcome == live.NoHost:
		return h.noHost(w, r, next, added)
	case outcome == live.NotReady:
		w.Header().Set("Retry-After", retryAfter)
	case writer.Aborted():
		_ = http.NewResponseController(w).Flush() // Send the data that is already buffered.
		panic(http.ErrAbortHandler)
	}
	for i := range x.ErrorFields {
		w.Header().Add(x.ErrorFields[i].Name, x.ErrorFields[i].Value)
	}
	return caddyError(err)
}

// noHost handles a request that matches no Ingress. If PassThru is set, it calls the next handler; otherwise it returns
// an error, for which the error routes of the server run. added is true if demandTLS has added the HSTS header.
func (h *Handler) noHost(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, added bool) error {
	if !h.PassThru {
		return caddyhttp.HandlerError{StatusCode: http.StatusNotFound, Err: errNoHost}
	}
	if added {
		delete(w.Header(), strictTransport)
	}
	return next.ServeHTTP(w, r)
}

// caddyError returns err as an unwrapped caddyhttp.HandlerError. Caddy's HTTP server checks for this type with a type
// assertion; for any other error it would send the status of the error route, which is 200 by default.
func caddyError(err error) error {
	if err == nil || errors.Is(err, exchange.ErrAborted) {
		return nil
	}
	var failure caddyhttp.HandlerError
	if errors.As(err, &failure) && failure.StatusCode == exchange.StatusOf(err) {
		return failure
	}
	// caddyhttp.Error is not used, because it would keep the status of a HandlerError that err wraps.
	return caddyhttp.HandlerError{StatusCode: exchange.StatusOf(err), Err: err}
}

// strictTransport is the name of the header that makes browsers use only HTTPS for a host.
const strictTransport = "Strict-Transport-Security"

// demandTLS adds the HSTS header to the response, unless the administrator has set it, and reports whether it added it.
// As in ingress-nginx, the header is added to responses with any status, but only if the client's connection to this
// process uses TLS; X-Forwarded-Proto is ignored.
func (h *Handler) demandTLS(w http.ResponseWriter, r *http.Request) bool {
	value, header := h.table.HSTS(), w.Header()
	if _, ok := header[strictTransport]; ok || r.TLS == nil || value == "" {
		return false
	}
	// Assign a new slice, because Caddy's headers handler may modify the existing slice.
	header[strictTransport] = []string{value}
	return true
}

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
