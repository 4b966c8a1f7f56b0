package live

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/k8singress/k8singress/internal/http/exchange"
)

// maxReroutes is the maximum number of times that the path of a request may be changed so that it gets another route,
// as in nginx.
const maxReroutes = 10

var (
	errCycle = errors.New("rewrite cycle: the path was rewritten too often, each time for another route")
	// errClaimed is returned if a server passes requests without a route on, and a rewrite leads to no route. The next
	// Caddy handler must not get such a request, because it would serve the path from before the rewrite.
	errClaimed = exchange.Fail(http.StatusNotFound, errors.New("no Ingress has the rewritten path"))
)

// reroutes reports whether a request whose chain has failed with err gets another route.
func reroutes(x *exchange.Exchange, err error) bool {
	return errors.Is(err, exchange.ErrReroute) && x.Reroutes < maxReroutes && !x.Writer.Started()
}

// withoutCycle replaces the error of a request that gets no other route although a filter needs one.
func withoutCycle(x *exchange.Exchange, err error) error {
	switch {
	case !errors.Is(err, exchange.ErrReroute):
		return err
	case x.Writer.Started():
		return fmt.Errorf("%w: a handler responded although a rewrite needs another route", exchange.ErrAborted)
	}
	return exchange.Fail(http.StatusInternalServerError, fmt.Errorf("%w: %s", errCycle, x.Path))
}

// reroute serves a request with the route for its new path, until no filter needs another route. name is the host name
// of the request.
func (t *Table) reroute(x *exchange.Exchange, name string, at exchange.Arrival) (outcome Outcome, err error) {
	passesOn := x.PassesOn
	for again := true; again; again = err != nil && reroutes(x, err) {
		x.Reroute(at)
		outcome, err = t.serveRoute(x, name)
	}
	if outcome == NoHost && passesOn {
		return Served, errClaimed
	}
	return outcome, err
}
