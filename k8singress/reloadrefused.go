package k8singress

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
)

var errReload = errors.New(
	"this process was started with `caddy k8singress run`, and `caddy reload` does not know its flags, so the " +
		"configuration is unchanged; to load a changed Caddyfile, restart the pods with `kubectl rollout restart` " +
		"(docs/kubernetes.md)")

// refuseReload rejects `caddy reload` in a process of `caddy k8singress run`. The new configuration would lack the
// flags of the command line, and with them the class, the ConfigMap and the port for probes.
func refuseReload(http.ResponseWriter, *http.Request) error {
	return failed(http.StatusConflict, errReload)
}

// reloadRoutes returns the route that rejects `caddy reload`, or nil if the process was not started by `caddy
// k8singress run`. Caddy's own route for /load accepts every method, and a pattern with a method takes precedence over
// it. The controller itself writes to /config/, not to /load.
func reloadRoutes() []caddy.AdminRoute {
	if commandLine.given == nil {
		return nil
	}
	return []caddy.AdminRoute{{Pattern: "POST /load", Handler: caddy.AdminHandlerFunc(refuseReload)}}
}
