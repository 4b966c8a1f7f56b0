package k8singress

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/message"
)

// limitPause sets the maximum time between two reads of the body of a request to Caddy's HTTP server. If the controller
// created the server, the limit comes from the ConfigMap, and restore sets Caddy's own limit again. Otherwise, Caddy's
// own limit stays in effect, and restore does nothing. Routes with a bidirectional streaming protocol disable the limit
// with of.LiftBodyTimeout.
func (h *Handler) limitPause(r *http.Request, of *message.Request) (restore func()) {
	body, _ := caddyhttp.IdleTimeoutsFromContext(r.Context())
	if body == nil {
		return func() {}
	}
	of.LiftBodyTimeout = func() { body.Override(front.NoBodyTimeout, 0) }
	limit := h.table.Global().Connections.BodyTimeout
	if !h.ours || limit == 0 {
		return func() {}
	}
	return body.Override(limit, 0)
}
