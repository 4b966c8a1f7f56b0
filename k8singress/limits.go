package k8singress

import (
	"cmp"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// adjust applies the limits that the ConfigMap sets (by) to the limits in the server's Caddy JSON (of), and returns the
// result. A limit that the ConfigMap does not set keeps its value.
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

// namesOf returns which request header names are forwarded: plain names, plain names and names with underscores, or all
// names. As in nginx, names with underscores are forwarded if invalid names are allowed.
func namesOf(by *ir.ClientConnections) message.Names {
	switch {
	case by.InvalidNames:
		return message.AllNames
	case by.Underscores:
		return message.UnderscoredNames
	}
	return message.PlainNames
}

// limitPause limits the time between two reads of the request body, for requests to Caddy's HTTP server. If the server
// was created by the controller, the limit comes from the ConfigMap. Routes with a bidirectional streaming protocol
// disable the limit. restore restores Caddy's own limit.
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
