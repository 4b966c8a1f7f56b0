package k8singress

import (
	"cmp"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// adjust returns limits with the values from the ConfigMap. Values that the ConfigMap does not set keep the settings of
// the server in Caddy's JSON.
func adjust(of front.Limits, by *ir.ClientConnections) front.Limits {
	of.Head, of.Body = cmp.Or(by.HeaderTimeout, of.Head), cmp.Or(by.BodyTimeout, of.Body)
	of.HeadBytes, of.Streams = cmp.Or(by.MaxHead, of.HeadBytes), cmp.Or(by.Streams, of.Streams)
	if of.Requests = by.Requests; by.KeepAlive < 0 {
		of.Requests = 1
	} else {
		of.Idle = cmp.Or(by.KeepAlive, of.Idle)
	}
	of.Names = namesOf(by)
	return of
}

// namesOf returns which names of request headers are forwarded. As in nginx, allowing all names includes names with
// underscores.
func namesOf(by *ir.ClientConnections) message.Names {
	switch {
	case by.InvalidNames:
		return message.AllNames
	case by.Underscores:
		return message.UnderscoredNames
	}
	return message.PlainNames
}

// limitPause limits how long the body of a request to Caddy's server may pause. On the controller's own servers, the
// limit is the ConfigMap's. Routes whose protocol streams in both directions lift the limit. restore restores Caddy's
// limit.
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
