package live

import (
	"errors"
	"net/http"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

var (
	errAmbiguous = errors.New(
		"the path is ambiguous: an endpoint could interpret it as another path with different access control")
	errStrict = errors.New("the path is ambiguous, and strict_paths rejects ambiguous paths")
)

// checkPath rejects a request if an endpoint may interpret its path as another path with different access rules. This
// is possible because the endpoint gets the path as the client sent it, and may decode and clean it differently from
// the controller.
func (t *Table) checkPath(x *exchange.Exchange, h *host, route *Route) error {
	strict := t.options.Load().StrictPaths
	if !strict && (route == nil || h.uniform) || !message.Ambiguous(x.EscapedPath) {
		return nil
	}
	if strict {
		return exchange.Fail(http.StatusBadRequest, errStrict)
	}
	readings, ok := message.Readings(x.EscapedPath)
	if !ok {
		return exchange.Fail(http.StatusBadRequest, errAmbiguous)
	}
	exempt := h.clients != nil && route.servesChallenges(x.Request)
	for _, reading := range readings {
		other, err := h.find(reading, x.Request)
		if err != nil {
			return err
		}
		if exempt && !strings.HasPrefix(reading, challenges+"/") || !route.admitsAll(reading, other) {
			return exchange.Fail(http.StatusBadRequest, errAmbiguous)
		}
	}
	return nil
}

// admitsAll reports whether all clients that the route r accepts may also access path. other is the route for path. If
// path has no route, other is nil. In this case, admitsAll returns true only if path is still ambiguous, because no
// endpoint would serve such a path.
func (r *Route) admitsAll(path string, other *Route) bool {
	if other == nil {
		return message.Ambiguous(path)
	}
	guards := other.guardKey()
	return guards == "" || guards == r.guardKey()
}

// guardKey returns a string that identifies the access rules of a route. Two routes with the same access rules have the
// same key. The key is empty if the route accepts all clients.
func (r *Route) guardKey() string {
	if r.refused() != nil {
		// Caddy rejected a handler of this route. The handler may have restricted access, so treat the route as
		// restricted.
		return "refused"
	}
	return strings.Trim(r.accessKey(), ",")
}

// isUniform reports whether every path of the host has a route, and all routes accept the same clients. Ambiguous paths
// are then harmless.
func (h *host) isUniform() bool {
	root := h.prefix.routes
	if root == nil || h.clients != nil {
		return false
	}
	for root.conditions != nil {
		if root = root.next; root == nil {
			return false
		}
	}
	for _, r := range h.all {
		if ir.MatchType(r.Type) != ir.LocationNamed && r.guardKey() != root.guardKey() {
			return false
		}
	}
	return true
}
