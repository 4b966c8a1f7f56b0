package k8singress

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
)

func init() { caddy.RegisterModule(new(Handler)) }

// Handler serves requests according to the Ingresses. A request for a host or path that no Ingress defines gets 404.
// All requests get 503 until the Ingresses are loaded for the first time.
type Handler struct {
	// PassThru forwards requests that match no Ingress to the next handler, instead of responding with 404.
	PassThru bool `json:"pass_thru,omitempty"`

	answerer
	// ours is true if the controller created the server, and false if the server belongs to a site in the Caddyfile.
	ours bool
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress", New: func() caddy.Module { return new(Handler) }}
}

// Provision gets the routing table from the running k8singress app. It returns an error if a chain of the app cannot be
// provisioned.
func (h *Handler) Provision(ctx caddy.Context) error {
	if insideChain(ctx) {
		return errors.New("the k8singress handler cannot be part of a chain, because requests would loop")
	}
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	h.answerer = answerer{
		table: app.engine.Table(), errors: errorLog, proxies: proxiesOf(ctx, app),
		passesOn: h.PassThru, errorRoutes: hasErrorRoutes(ctx),
	}
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		h.ours = front.Process().Listens(server)
	}
	recordShutdown(ctx, app)
	return nil
}

// ServeHTTP responds to a request with the handler chain of the matching Ingress path. If no Ingress matches and
// PassThru is set, it calls next.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	requests.begun.Add(1)
	defer requests.ended.Add(1)
	writer := message.NewHTTPWriter(w, r)
	writer.FollowBody(r)
	request := &message.Request{Names: limits.NamesOf(&h.table.Global().Connections)}
	defer h.limitPause(r, request)()
	request.FromHTTP(r)
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		request.Target = message.TargetOf(&original)
	}
	delete(w.Header(), "Server")
	outcome, err := h.answer(writer, request, nil)
	if outcome == live.NoHost && h.PassThru {
		if caddy.Exiting() {
			sendAway(w, r)
		}
		return next.ServeHTTP(w, r)
	}
	writer.EndRequest()
	markAnswered(request)
	if writer.Aborted() {
		if writer.Started() {
			_ = http.NewResponseController(w).Flush() // Send the data that is already buffered.
		}
		panic(http.ErrAbortHandler)
	}
	if !h.errorRoutes {
		return nil // The response is sent, and the error is logged.
	}
	return err
}

// hasErrorRoutes reports whether error routes of Caddy may handle the errors of the handler with the context ctx: the
// error routes of its server, or of a subroute around it.
func hasErrorRoutes(ctx caddy.Context) bool {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok || server.Errors != nil {
		return true
	}
	return slices.ContainsFunc(ctx.Modules(), func(around caddy.Module) bool {
		subroute, ok := around.(*caddyhttp.Subroute)
		return ok && subroute.Errors != nil
	})
}

// caddyError returns err as an unwrapped caddyhttp.HandlerError with an ID. Caddy's HTTP server checks for this type
// with a type assertion; for any other error it would send the status of the error route, which is 200 by default. The
// ID is the result of errorID, unless a Caddy handler has created the error.
func caddyError(err error, requestID string) error {
	if err == nil || errors.Is(err, exchange.ErrAborted) {
		return nil
	}
	var failure caddyhttp.HandlerError
	if errors.As(err, &failure) && failure.StatusCode == exchange.StatusOf(err) {
		return failure
	}
	// caddyhttp.Error is not used, because it would keep the status of a HandlerError that err wraps.
	return caddyhttp.HandlerError{ID: errorID(requestID), StatusCode: exchange.StatusOf(err), Err: err}
}

// errorID returns a request ID for the placeholder {err.id}, or "" if it contains other characters than ASCII letters,
// digits, "-", "_" and ".". A client can choose the ID, and error routes may write it into HTML or evaluate it as a
// template.
func errorID(requestID string) string {
	if strings.ContainsFunc(requestID, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("-_.", c)
	}) {
		return ""
	}
	return strings.Clone(requestID)
}

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
