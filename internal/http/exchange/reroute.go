package exchange

import (
	"errors"
	"slices"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// ErrReroute is returned by a filter that has changed the path of the request, with SetPath, and possibly its query,
// and wants a route for the new path. The request then continues as if the client had sent this path to the same host,
// but Target keeps what the client sent. Instead, the filter can set Named. It must not have written a part of the
// response.
var ErrReroute = errors.New("the filter has changed the path, so the request needs a route for the new path")

// Arrival holds the values of an exchange that filters replace, as they were before the first route was found.
type Arrival struct {
	request *message.Request
	host    string
	writer  message.Writer
	changes Changes
}

// Arrival returns the values to pass to Reroute or ResetAfterPanic later.
func (x *Exchange) Arrival() Arrival { return Arrival{x.Request, x.Host, x.Writer, x.ForAllResponses} }

// ResetAfterPanic prepares the exchange for an error response after a handler has panicked. It drops all that handlers
// have set for the response. If the handler was to send an error page, the error for which the page was meant is
// recorded for the log. at is the result of Arrival.
func (x *Exchange) ResetAfterPanic(at Arrival) {
	if x.errors != nil && x.errors.page != nil {
		x.HideError(x.errors.page.err)
	}
	x.Request, x.Writer, x.ForAllResponses = at.request, at.writer, at.changes
	x.Host = at.host
	x.changes, x.forResponse, x.ResponseEnds, x.ErrorFields = nil, nil, nil, nil
	x.Request.Panicked, x.Retained = true, true
	// Other requests on a connection of HTTP/2 or HTTP/3 go on.
	x.CloseConn = x.CloseConn || x.Major < 2
}

// Reroute prepares the exchange for another route after a filter has returned ErrReroute and Close was called. Like
// nginx, it drops everything that the previous route has set for the response and for the endpoint. It keeps the values
// of variables, the changes to the path, the query and the header fields of the request, the attempts and the bytes for
// logs and metrics, and for an error page the status and the fields of the failed request. Some of it is only for
// routes of the same namespace; see ChangeNamespace. at is the result of Arrival. A request for which no route is found
// is no longer passed on, since a route has already claimed it. EndReroutes must be called at the end.
func (x *Exchange) Reroute(at Arrival) {
	x.Host = at.host
	from, handling := "", x.errors
	if x.Route != nil {
		from = ir.ParseRef(x.Route.Origin).Namespace
	}
	*x = Exchange{
		Request: x.Request, Writer: at.writer, Prepare: x.Prepare, CaddyContext: x.CaddyContext,
		Clients: x.Clients, Global: x.Global, Headers: x.Headers, Variables: x.Variables,
		ByServer: x.ByServer, ForAllResponses: at.changes, CloseConn: x.CloseConn, ErrorBodies: x.ErrorBodies,
		ErrorRoutes: x.ErrorRoutes,
		Meter:       x.Meter, // If there is no route for the new path, the request counts for the previous route.
		// What is counted adds up, because the response counts only once.
		Received: x.Received, Relayed: x.Relayed, attempts: x.attempts, firstAttempts: x.firstAttempts,
		connect: x.connect,
		Span:    x.Span, Retained: x.Retained, Reroutes: x.Reroutes + 1, From: from,
		ServerProgram: x.ServerProgram,
		client:        x.client, hasClient: x.hasClient, id: x.id, hasID: x.hasID,
		scripted: x.scripted, defined: x.defined, received: x.received, limited: x.limited,
	}
	handling.resume(x)
}

// ChangeNamespace is called if the request gets a route of another namespace, which may grant access because of the
// values of variables, the header fields, or the path that the client has sent. It drops the values that programs have
// given to variables, their capture groups, and their changes to the header fields of the request. The path and the
// query to which the request was rewritten count as sent by the client from now on, until EndReroutes is called. All
// limits of the new route apply.
// keepsServer is true if ServerProgram is a filter of the new route, too. The variables of this program then stay,
// unless they may depend on the other programs. Otherwise the program of the host for the new route runs as for the
// request of a client.
func (x *Exchange) ChangeNamespace(keepsServer bool) {
	x.dropVariables(keepsServer)
	x.limited = limited{}
	// The context is created once for both requests, because the server only ends one.
	x.Context()
	request := *x.Request
	request.Target = x.OutTarget()
	if x.received != nil {
		request.Fields = slices.Clone(x.received)
	}
	x.Request = &request
}

// keepReceived keeps the header fields that the client has sent. It must be called before a program changes them.
func (x *Exchange) keepReceived() {
	if x.received == nil {
		x.received = append(message.Fields{}, x.Fields...)
	}
}
