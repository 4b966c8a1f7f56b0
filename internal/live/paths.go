package live

import (
	"errors"
	"net/http"
	"strings"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/message"
)

// Bounds of a path that servers read in more than one way, where guards depend on it: each reading costs a look at the routes. The key of
// an object has at most 1024 bytes in S3, which are 3072 when each of them is escaped.
const (
	longestAmbiguous = 4 << 10
	mostReadings     = 16
)

var (
	errAmbiguous = errors.New("an endpoint could read the path as another one, which lets in other clients")
	errStrict    = errors.New("servers read the path in more than one way, and strict_paths is on")
)

// checkPath refuses a request whose path an endpoint may take for one that other guards stand in front of. The endpoint gets the path as
// the client sent it, and may decode and clean it in another way than it was routed by.
func (t *Table) checkPath(x *exchange.Exchange, h *host, route *Route) error {
	strict := t.options.Load().StrictPaths
	if !strict && (route == nil || h.uniform) || !message.Ambiguous(x.EscapedPath) {
		return nil
	}
	if strict {
		return exchange.Fail(http.StatusBadRequest, errStrict)
	}
	if len(x.EscapedPath) > longestAmbiguous {
		return exchange.Fail(http.StatusBadRequest, errAmbiguous)
	}
	readings, ok := message.Readings(x.EscapedPath, mostReadings)
	if !ok {
		return exchange.Fail(http.StatusBadRequest, errAmbiguous)
	}
	exempt := h.clients != nil && route.answersChallenges(x.Request)
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

// admitsAll says whether all clients that the route lets in may come to a path that leads to another one, or to none. A path without a
// route is for no client, but one that is still ambiguous names nothing that an endpoint would serve.
func (r *Route) admitsAll(path string, other *Route) bool {
	if other == nil {
		return message.Ambiguous(path)
	}
	guards := other.guards()
	return guards == "" || guards == r.guards()
}

// guards is the same for routes that let in the same clients, and empty for a route that lets in all.
func (r *Route) guards() string {
	if r.refused() != nil {
		// What it answers 503 for may be what should guard it.
		return "refused"
	}
	return strings.Trim(r.admits(), ",")
}

// isUniform says whether each path of a host leads to a route, and all routes let in the same clients.
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
		if r.guards() != root.guards() {
			return false
		}
	}
	return true
}
