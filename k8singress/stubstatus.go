package k8singress

import (
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() { caddy.RegisterModule(new(StubStatus)) }

// StubStatus responds with the numbers of connections and requests of the process, as nginx's directive stub_status
// does. It is a Caddy handler because the counters belong to this package.
type StubStatus struct{}

// CaddyModule returns the Caddy module information.
func (*StubStatus) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID: "http.handlers.k8singress_stub_status", New: func() caddy.Module { return new(StubStatus) },
	}
}

// ServeHTTP responds to GET and HEAD. Like nginx, it rejects other methods with 405.
func (*StubStatus) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return caddyhttp.Error(http.StatusMethodNotAllowed, errStatusMethod)
	}
	w.Header().Set("Content-Type", "text/plain")
	// The error is ignored, because a write only fails if the client has disconnected.
	_, _ = io.WriteString(w, statusPage())
	return nil
}

var _ caddyhttp.MiddlewareHandler = (*StubStatus)(nil)
