package k8singress

import (
	"errors"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/proxy"
)

func init() { caddy.RegisterModule(new(Handler)) }

// Handler answers requests as the Ingresses say. A request for a host or a path that no Ingress has gets 404, and
// before the Ingresses are known for the first time every request gets 503.
type Handler struct {
	// PassThru hands requests that no Ingress asks for to the next handler, in place of 404.
	PassThru bool `json:"pass_thru,omitempty"`

	table *live.Table
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the running tables.
func (h *Handler) Provision(ctx caddy.Context) error {
	if insideChain(ctx) {
		return errors.New("the k8singress handler cannot stand in a chain, which it would come back to for ever")
	}
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	h.table = app.engine.Table()
	noteShutdown(ctx, app)
	return nil
}

// retryAfter is how many seconds a client should wait for the first complete configuration.
const retryAfter = "1"

var (
	errNotReady = errors.New("the Ingresses are not known yet")
	errNoPath   = errors.New("the request line has no path")
	errPath     = errors.New("the path has a NUL in it")
	errMethod   = errors.New("the method is not served: CONNECT and TRACE are for others")
	errLoop     = errors.New("the request has come through here too often: does a Service of type ExternalName lead back?")
)

// ServeHTTP lets the chain of the matching Ingress path answer.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !r.ProtoAtLeast(1, 1) {
		w = &final{&caddyhttp.ResponseWriterWrapper{ResponseWriter: w}}
	}
	w = expect(w, r)
	return settled(w, h.serve(w, r, next))
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	added := h.demandTLS(w, r)
	if caddy.Exiting() {
		sendAway(w, r)
	}
	if err := refuse(r); err != nil {
		return err
	}
	if r.ContentLength < 0 {
		defer allowSilence(r)()
	}
	outcome, err := h.table.Serve(w, r)
	switch outcome {
	case live.NotReady:
		w.Header().Set("Retry-After", retryAfter)
		return caddyhttp.Error(http.StatusServiceUnavailable, errNotReady)
	case live.NoHost:
		if h.PassThru {
			if added {
				delete(w.Header(), strictTransport)
			}
			return next.ServeHTTP(w, r)
		}
		w.WriteHeader(http.StatusNotFound)
		return nil
	case live.Served:
	}
	return withoutEndpoints(r, err)
}

// refuse returns an error for requests that no Ingress could mean: a tunnel, a request for "*" or for something like
// "x:admin", which has no path that Ingresses could look at, a path with a NUL in it, and one that goes round in circles.
func refuse(r *http.Request) error {
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		return caddyhttp.Error(http.StatusMethodNotAllowed, errMethod)
	case r.URL.Opaque != "" || r.URL.Path == "*":
		return caddyhttp.Error(http.StatusBadRequest, errNoPath)
	case strings.IndexByte(r.URL.Path, 0) >= 0:
		return caddyhttp.Error(http.StatusBadRequest, errPath)
	case proxy.Loops(r):
		return caddyhttp.Error(http.StatusLoopDetected, errLoop)
	}
	return nil
}

// withoutEndpoints turns the failure of a request that had nobody left to go to into 503: its last endpoint has gone
// meanwhile, or was about to end.
func withoutEndpoints(r *http.Request, err error) error {
	if err == nil {
		return nil
	}
	var failure caddyhttp.HandlerError
	if !errors.As(err, &failure) || failure.StatusCode != http.StatusBadGateway && failure.StatusCode != http.StatusGatewayTimeout {
		return err
	}
	request := live.FromContext(r.Context())
	if request == nil || request.Backend() == nil || request.Backend().Ready() {
		return err
	}
	// caddyhttp.Error would keep the status that the error has.
	failure.StatusCode = http.StatusServiceUnavailable
	return failure
}

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
