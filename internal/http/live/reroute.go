package live

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// maxReroutes is the maximum number of times that a request may get another route, as in nginx.
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

// passToErrorPage passes a request that has failed with err to the error page of a program. It returns
// exchange.ErrReroute, unless the client is redirected or the request has been passed on too often.
func passToErrorPage(x *exchange.Exchange, err error) error {
	switch {
	case errors.Is(err, errCycle):
		return err
	case x.Reroutes >= maxReroutes:
		return exchange.Fail(http.StatusInternalServerError, fmt.Errorf("%w: error pages for %s", errCycle, x.Path))
	}
	return x.PassToErrorPage(err)
}

// leaveNamespace calls ChangeNamespace if x has got a route of another namespace than its route before. steps are the
// handlers of the new route.
func leaveNamespace(x *exchange.Exchange, steps []step) {
	if ir.ParseRef(x.Route.Origin).Namespace == x.From {
		return
	}
	x.ChangeNamespace(x.ServerProgram != nil && slices.ContainsFunc(steps, func(s step) bool {
		return s.filter == x.ServerProgram
	}))
}

// reroute serves a request with the route for its new path, or with the location that a filter has named, until no
// filter and no error page needs another route. name is the host name of the request.
func (t *Table) reroute(x *exchange.Exchange, name string, at exchange.Arrival) (outcome Outcome, err error) {
	passesOn := x.PassesOn
	for again := true; again; again = err != nil && reroutes(x, err) {
		location := x.Named
		x.Reroute(at)
		outcome, err = t.serveRoute(x, t.takeIndex(x, name), name, location)
	}
	found := outcome != NoHost
	if err = x.EndReroutes(at, found, err); err == nil && !found && passesOn {
		err = errClaimed
	}
	if err != nil {
		outcome = Served
	}
	return outcome, err
}
