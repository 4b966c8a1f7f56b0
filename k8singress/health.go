package k8singress

import (
	"cmp"
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/control/engine"
)

func init() { caddy.RegisterModule(new(Health)) }

const healthPath = "/healthz"

// Health responds to probes from the kubelet or a load balancer. Path returns 200 while the process runs or, if Ready
// is true, the same as /readyz. /readyz returns 200 if new requests can be sent to this process: the Ingresses are
// loaded, the servers of the options http and https run, and the process is not exiting. Otherwise /readyz returns 503
// with the reason. Every other path returns 404.
type Health struct {
	// Path is the path of the health check. Default: /healthz.
	Path string `json:"path,omitempty"`
	// Ready makes Path behave like /readyz. Default: false.
	Ready bool `json:"ready,omitempty"`
	// Metrics means that another handler serves /metrics, so that the text of a 404 names it. Default: false.
	Metrics bool `json:"metrics,omitempty"`

	engine *engine.Engine
}

// CaddyModule returns the Caddy module information.
func (*Health) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_health", New: func() caddy.Module { return new(Health) }}
}

// Provision gets the engine of the running k8singress app, which knows whether the process is ready.
func (h *Health) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	h.engine = app.engine
	return nil
}

// ServeHTTP responds to one probe.
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
		status, text = http.StatusNotFound, "unknown path: the paths are "+h.paths()+"\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, err := io.WriteString(w, text)
	return err
}

// paths lists the paths of the server, for people who have mistyped one.
func (h *Health) paths() string {
	path := cmp.Or(h.Path, healthPath)
	if h.Metrics {
		return path + ", /readyz and /metrics"
	}
	return path + " and /readyz"
}

func (h *Health) readiness() (status int, text string) {
	if caddy.Exiting() {
		return http.StatusServiceUnavailable, "the process is shutting down\n"
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
