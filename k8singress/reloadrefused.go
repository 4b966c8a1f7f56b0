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

// refuseReload rejects `caddy reload` if the process was started by `caddy k8singress run`. The new configuration would
// not contain the settings from the command line, such as the class, the ConfigMap and the health port.
func refuseReload(http.ResponseWriter, *http.Request) error {
	return failed(http.StatusConflict, errReload)
}

// reloadRoutes returns the admin route that rejects `caddy reload`, or nil if the process was not started by `caddy
// k8singress run`. Its pattern takes precedence over Caddy's own route for /load, because it contains a method. The
// controller itself changes the configuration through /config/, so it is not affected.
func reloadRoutes() []caddy.AdminRoute {
	if commandLine.given == nil {
		return nil
	}
	return []caddy.AdminRoute{{Pattern: "POST /load", Handler: caddy.AdminHandlerFunc(refuseReload)}}
}
