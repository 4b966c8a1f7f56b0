package k8singress

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/http/errorlog"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/http/tracing"
	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// answerer responds to requests according to the routing table. It is used for all requests to Ingresses, no matter
// whether Caddy's HTTP server or the controller's own server has read them. Its fields describe the differences between
// these servers.
type answerer struct {
	table *live.Table
	// errors logs the error responses of the controller.
	errors errorlog.Log
	// proxies are the settings of the Caddy server about the proxies in front of it. It is nil if there are none.
	proxies *realip.Server
	// prepare prepares a request for Caddy handlers in the same way as Caddy's HTTP server. It is nil if Caddy's HTTP
	// server has prepared the request already.
	prepare func(http.ResponseWriter, *http.Request) *http.Request
	// passesOn is true if a request that matches no Ingress is passed to the next Caddy handler, instead of getting
	// 404.
	passesOn bool
	// errorRoutes is true if error routes of Caddy's HTTP server, or of a subroute, send all error responses. In that
	// case, answerer does not send an error response, but only sets its header fields in the http.ResponseWriter. It
	// cannot send a body as well: handlers around it, such as templates and intercept, drop what was written if they
	// get an error, and Caddy then sends the status with the wrong length. Without error routes, Caddy would send a
	// status without a body, so answerer sends the response, and the handlers around it get no error.
	errorRoutes bool
}

var exchanges = pools.NewStructs[exchange.Exchange]("k8singress: exchange")

// answer responds to a request, and records it in the logs, metrics and traces. added are header changes that the
// server makes to all of its responses; nil means no changes. If no Ingress matches (live.NoHost) and a.passesOn is
// set, answer neither responds nor records the request, so that the next Caddy handler can respond. err is the error of
// a failed request. It has already been logged. If a.errorRoutes is set, err is a caddyhttp.HandlerError or nil, and
// the caller must pass it to Caddy's HTTP server, which sends the error response.
func (a *answerer) answer(w message.Writer, r *message.Request, added *message.Changes) (outcome live.Outcome,
	err error) {
	began := time.Now()
	w = a.table.AccessLog().Watch(w, r)
	owned := exchanges.Get()
	x := owned.Value()
	*x = exchange.Exchange{
		Request: r, Writer: w, Prepare: a.prepare, ForAllResponses: a.table.Always(r.TLS() != nil), ByServer: added,
		CloseConn: caddy.Exiting(), PassesOn: a.passesOn,
		// Set the fields Clients and Global here, because the access log needs Clients even if the request is rejected
		// before its route is looked up.
		Clients: a.clients(), Global: a.table.Global(), ErrorBodies: a.table.ErrorBodies(),
		ErrorRoutes: a.errorRoutes,
	}
	var placeholders *exchange.Placeholders
	if a.prepare == nil {
		live.ShareClient(r.Context(), x)
		x.CaddyContext = r.Context()
		placeholders = live.AddPlaceholders(x)
	}
	if outcome, err = a.serve(x); outcome == live.NoHost && !a.passesOn {
		err = noHost(x)
	}
	var later *errorResponse
	switch {
	case err == nil:
		a.errors.Answered(x)
	case a.fail(x, outcome, err):
		later = errorResponseOf(r)
	}
	switch known := outcome != live.NoHost || x.KnownHost; {
	case later != nil:
		later.postpone(a.table, x, began, known)
	case outcome != live.NoHost || !a.passesOn:
		account(a.table, x, began, known)
	}
	tracing.End(x, err)
	placeholders.End()
	if a.errorRoutes && err != nil {
		err = caddyError(err, x.ID())
	}
	if !x.Retained {
		owned.Release()
	}
	return outcome, err
}

// serve serves a request from the routing table. If a handler panics, serve reports the panic, and returns an error
// that makes the client get the status 500, unless the response has been started.
func (a *answerer) serve(x *exchange.Exchange) (outcome live.Outcome, err error) {
	at := x.Arrival()
	caught := panics.Try(func() {
		if outcome, err = serve(a.table, x); outcome == live.Probe {
			err = serveProbe(a.table, x)
		}
	})
	if caught == nil {
		return outcome, err
	}
	x.ResetAfterPanic(at)
	//nolint:errorlint // It is the very value of a panic.
	if caught.Value == http.ErrAbortHandler {
		// A Caddy handler, such as "abort", ends the response on purpose.
		return live.Served, fmt.Errorf("%w: %w", exchange.ErrAborted, exchange.ErrRejected)
	}
	panics.Report("http/handler", caught)
	return live.Served, exchange.Fail(http.StatusInternalServerError, fmt.Errorf("%w: %w", errPanicked, caught))
}

// clients returns the policy that determines the clients of requests: the settings of the ConfigMap together with the
// settings of the Caddy server.
func (a *answerer) clients() *realip.Policy { return a.proxies.Under(a.table.Clients()) }

// announcer is implemented by message.HTTPWriter, and by the access log's wrapper of such a writer.
type announcer interface {
	Announce(response *message.Response)
	Answered(response *message.Response, sent int64)
}

// fail logs the error of a failed request. If no response has been started, it sends an error response, or prepares the
// response that Caddy's error routes will send. In the latter case it returns true.
func (a *answerer) fail(x *exchange.Exchange, outcome live.Outcome, err error) (announced bool) {
	if errors.Is(err, exchange.ErrAborted) || x.Writer.Started() {
		if !errors.Is(err, exchange.ErrRejected) {
			a.errors.CutOff(x, err)
		}
		x.Writer.Abort()
		return false
	}
	status, fields := exchange.StatusOf(err), []message.Field(nil)
	if outcome == live.NotReady {
		fields = []message.Field{message.NewField("Retry-After", retryAfter)}
	}
	a.errors.Failed(x, err)
	if w, ok := x.Writer.(announcer); ok && a.errorRoutes {
		w.Announce(x.Refusal(status, fields...))
		return true
	}
	// The error is ignored, because a write only fails if the client has disconnected.
	_ = x.Refuse(status, fields...)
	return false
}
