package k8singress

import (
	"cmp"
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/engine"
)

func init() { caddy.RegisterModule(new(Health)) }

const healthPath = "/healthz"

// Health answers the probes of a kubelet or of a load balancer: Path with 200 while the process works, or as /readyz with Ready, and
// /readyz with 200 while new requests should come here. That is once the Ingresses are known and the servers of the options http and
// https run, and until the process has to end; otherwise it is 503 with the reason. Every other path that comes here is 404.
type Health struct {
	// Path is the one in place of /healthz. Default: /healthz.
	Path string `json:"path,omitempty"`
	// Ready has that path answer as /readyz does. Default: false.
	Ready bool `json:"ready,omitempty"`

	engine *engine.Engine
}

// CaddyModule returns the Caddy module information.
func (*Health) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_health", New: func() caddy.Module { return new(Health) }}
}

// Provision finds the running engine.
func (h *Health) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	h.engine = app.engine
	return nil
}

// ServeHTTP answers one probe.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	status, text := http.StatusOK, "ok\n"
	switch r.URL.Path {
	case cmp.Or(h.Path, healthPath):
		if h.Ready {
			status, text = h.readiness()
		}
	case "/readyz":
		status, text = h.readiness()
	default:
		status, text = http.StatusNotFound, "there is "+cmp.Or(h.Path, healthPath)+" and /readyz\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, err := io.WriteString(w, text)
	return err
}

func (h *Health) readiness() (status int, text string) {
	if caddy.Exiting() {
		return http.StatusServiceUnavailable, "the process ends\n"
	}
	if err := h.engine.Ready(); err != nil {
		return http.StatusServiceUnavailable, err.Error() + "\n"
	}
	return http.StatusOK, "ok\n"
}

var (
	_ caddy.Provisioner           = (*Health)(nil)
	_ caddyhttp.MiddlewareHandler = (*Health)(nil)
)
