package k8singress

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
)

var errReload = errors.New("this process was started by `caddy k8singress run`, and `caddy reload` does not know its flags: " +
	"the configuration stays as it is; to load a changed Caddyfile, restart the pods by `kubectl rollout restart` (docs/kubernetes.md)")

// refuseReload answers `caddy reload` in a process of `caddy k8singress run`. What it would load has none of the flags of the command
// line, and so neither the class nor the ConfigMap nor the port for probes that they name.
func refuseReload(http.ResponseWriter, *http.Request) error {
	return failed(http.StatusConflict, errReload)
}

// reloadRoutes returns the route that refuses `caddy reload`, or none in a process that `caddy run` has started. Caddy has a route for
// /load and every method; a pattern with a method takes precedence over it. The controller itself writes to /config/, not to /load.
func reloadRoutes() []caddy.AdminRoute {
	if commandLine.given == nil {
		return nil
	}
	return []caddy.AdminRoute{{Pattern: "POST /load", Handler: caddy.AdminHandlerFunc(refuseReload)}}
}
