package live

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/k8singress/k8singress/internal/http/compress"
	"github.com/k8singress/k8singress/internal/http/errorbody"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/mtls"
)

// Outcome is the result of Table.Serve.
type Outcome int

const (
	// Served means that the request was served, or that Serve returned an error.
	Served Outcome = iota
	// NotReady means that the routing table is not complete yet: MarkReady was not called.
	NotReady
	// NoHost means that no route matches the host and the path.
	NoHost
	// Probe means that the request is for HealthPath or StatusPath and no Ingress serves it. The caller must answer it.
	// The path of the exchange's route is HealthPath or StatusPath.
	Probe
)

// errBlocked is returned for a request that a block list in the ConfigMap rejects. Block lists apply to all routes.
var errBlocked = exchange.Fail(http.StatusForbidden, errors.New("the request matches a block list of the ConfigMap"))

// Serve finds the route of a request and runs its handler chain. The caller sets the request, the writer and the field
// Clients of the exchange; Serve sets the route. If the outcome is not Served, or if err is not nil, no part of the
// response was written and the caller should respond; exchange.StatusOf(err) is the status for an error. The exception
// is exchange.ErrAborted, for which the response may be incomplete.
func (t *Table) Serve(x *exchange.Exchange) (outcome Outcome, err error) {
	client, w := x.Writer, (*compress.Writer)(nil)
	if policy := t.global.compress.Load(); policy != nil {
		w = policy.Writer(client, x.Request, x.Namespace)
	}
	if w == nil {
		outcome, err = t.serve(x)
		x.Writer = client
		return outcome, err
	}
	defer w.Close()
	x.Writer = w
	outcome, err = t.serve(x)
	x.Writer = client
	if failed := w.End(err != nil); failed != nil {
		client.Abort()
		err = fmt.Errorf("%w: compressing the response: %w", exchange.ErrAborted, failed)
	}
	return outcome, err
}

// serve implements Serve. Serve has already replaced the writer of the exchange if the response may be compressed.
func (t *Table) serve(x *exchange.Exchange) (Outcome, error) {
	if !t.ready.Load() {
		return NotReady, nil
	}
	x.Global, x.Headers = t.Global(), t.global.responseHeaders.Load().headers
	name, arrival := message.Hostname(x.Host), x.Arrival()
	// The access log may contain variables, also if the request is rejected before it gets a route.
	index := t.takeIndex(x, name)
	if t.global.block.Load().Refuses(x) {
		return Served, errBlocked
	}
	if t.misdirected(x.Conn, name) {
		return Served, refuse(x, mtls.Misdirected)
	}
	outcome, err := t.serveRoute(x, index, name, "")
	if err != nil && reroutes(x, err) {
		return t.reroute(x, name, arrival)
	}
	return outcome, err
}

// takeIndex returns the current index for a request, and gives the request the variables of this index. name is the
// host name of the request.
func (t *Table) takeIndex(x *exchange.Exchange, name string) *index {
	index := t.indexFor(x.Conn.Listener, name)
	x.UseVariables(index.variables)
	return index
}

// serveRoute finds the route for a request, and runs its handler chain. index is the result of takeIndex. name is the
// host name of the request. location is the name of the location that must serve the request; if it is empty, the path
// decides. The results are the results of Serve, except that the error is exchange.ErrReroute if the request needs
// another route.
func (t *Table) serveRoute(x *exchange.Exchange, index *index, name, location string) (Outcome, error) {
	path := message.CleanPath(x.Path)
	for {
		h, route := index.find(name), (*Route)(nil)
		if h != nil {
			x.KnownHost = h.name != ""
			var err error
			if route, err = h.routeFor(x, path, location); err != nil {
				return Served, err
			}
		}
		if t.isProbe(x, index, h, route, path) {
			return Probe, nil
		}
		if route != nil {
			// The request counts for the route, even if it is rejected before it gets to the handler chain.
			x.Meter, x.Matched = route.meter, &route.Route
			if route.tracing != nil {
				t.global.tracer.Load().Begin(x, route.tracing)
			}
		}
		if err := t.checkPath(x, h, route); err != nil {
			return Served, err
		}
		if responded, err := t.beforeRoute(x, index, name, h, route); responded {
			return Served, err
		}
		if route == nil {
			return t.serveDefault(x)
		}
		to := route.to()
		i := to.chain.acquire()
		if i == nil {
			// The chain was removed from the routing table after the lookup, so look up the route again.
			index = t.takeIndex(x, name)
			continue
		}
		x.Route, x.Backend = &route.Route, to.backend
		return Served, t.serveOn(x, i, route, to)
	}
}

// beforeRoute responds to requests that must not reach their handler chain: requests that are redirected to HTTPS,
// requests on a TLS connection that was opened for another host, and requests whose client certificate is not accepted.
// responded is false for all other requests.
func (t *Table) beforeRoute(x *exchange.Exchange, index *index, name string, h *host,
	route *Route) (responded bool, err error) {
	// Redirect before the client certificate is checked, because a request without TLS has no certificate.
	if x.TLS() == nil {
		if to := h.redirectOf(x, route); to != nil {
			if responded, err := redirect(x, to); responded {
				return true, err
			}
		}
	}
	if x.TLS() != nil && h.passthroughCount() > 0 {
		// The host uses TLS passthrough, so a connection for this host never arrives here. This TLS connection was
		// opened for another host.
		return true, refuse(x, mtls.Misdirected)
	}
	if index.withClientAuth == 0 {
		return false, nil
	}
	refusal := index.admit(x, name, h, route)
	if refusal == nil {
		return false, nil
	}
	return true, refuse(x, refusal)
}

// refuse sends the error response to a client whose client certificate or TLS connection is not accepted for the host.
func refuse(x *exchange.Exchange, why *mtls.Refusal) error {
	x.CloseConn = x.CloseConn || why.CloseConn
	if why.Status < http.StatusBadRequest {
		return x.Respond(why.Status, why.Body(), why.Fields()...)
	}
	rejection := exchange.Rejection(why.Status, why.Reason)
	if why.Body() == "" || x.ErrorBodies && errorbody.IsGRPC(x.Request) {
		_, err := x.RespondError(rejection)
		return err
	}
	x.Refused = rejection
	return x.Respond(why.Status, why.Body(), why.Fields()...)
}

// CountsRoutes reports whether requests count in the metrics of routes. Metrics with the names of ingress-nginx do not
// depend on it.
func (t *Table) CountsRoutes() bool { return !t.options.Load().NoRouteMetrics }

func (t *Table) serveOn(x *exchange.Exchange, i *instance, route *Route, to *destination) error {
	defer i.release()
	if to.meter != nil {
		x.Meter = to.meter
	}
	if t.CountsRoutes() {
		defer x.Meter.Begin().End()
	}
	if x.Reroutes > 0 {
		leaveNamespace(x, i.steps)
	}
	if isStream(x.Request) || x.Peer != nil && isCall(x.Request) {
		defer route.streams.register(x.Request,
			stream{i.parts, x.TLS(), x.Peer != nil && route.servesChallenges(x.Request), time.Now()})()
	}
	defer x.Close()
	owned := chainRuns.Get()
	v := owned.Value()
	*v = ChainRun{x: x, table: t, instance: i, route: route, to: to}
	if route.errors != nil {
		v.use(route.errors.before)
	}
	err := x.EndResponse(v.run(0))
	pages := v.pages
	if !x.Retained {
		owned.Release()
	}
	x.Conclude(err)
	if err == nil || reroutes(x, err) {
		return err
	}
	err = withoutEndpoints(x, withoutCycle(x, err))
	switch {
	case x.HasPageFor(err) && replaceable(x, err):
		return passToErrorPage(x, err)
	case pages == nil:
		return err
	}
	return t.serveErrorPage(x, pages, err)
}

// withoutEndpoints changes the status of an error from 502 or 504 to 503 if the backend no longer has a ready endpoint,
// because its last endpoint was removed or is terminating.
func withoutEndpoints(x *exchange.Exchange, err error) error {
	if x.Backend == nil || x.Backend.Ready() {
		return err
	}
	if status := exchange.StatusOf(err); status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
		return exchange.Fail(http.StatusServiceUnavailable, err)
	}
	return err
}
