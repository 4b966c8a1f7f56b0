package live

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// redirectOf returns the redirect to HTTPS for a request, or nil if the request is not redirected. route is the route
// of the request, or nil if no route matches. In the latter case, the request is not redirected if the next Caddy
// handler may serve it.
func (h *host) redirectOf(x *exchange.Exchange, route *Route) *ir.HTTPSRedirect {
	switch {
	case route != nil:
		return route.redirect
	case h == nil || x.PassesOn:
		return nil
	}
	return h.redirect
}

var errNoTarget = exchange.Rejection(http.StatusBadRequest,
	"the request has no host, so it cannot be redirected to HTTPS")

// redirect redirects a request without TLS to HTTPS. It does nothing if a trusted proxy received the request over
// HTTPS.
func redirect(x *exchange.Exchange, to *ir.HTTPSRedirect) (responded bool, err error) {
	client := x.Client()
	if client.Proto != "http" {
		return false, nil
	}
	host := client.Hostname()
	if host == "" {
		// Reject an HTTP/1.0 request without a host: a redirect would have no target, and the request must not be
		// served without TLS.
		_, err := x.RespondError(errNoTarget)
		return true, err
	}
	if to.Port != 0 {
		host += ":" + strconv.Itoa(to.Port)
	}
	target := x.Target
	if !to.KeepSlash {
		target = strings.TrimSuffix(target, "/")
	}
	return true, x.Respond(to.Status, "", message.Location.Field("https://"+host+target))
}
