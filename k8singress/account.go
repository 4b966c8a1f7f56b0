package k8singress

import (
	"context"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/errorlog"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/process/logs"
)

// errorLog logs the error responses of all servers of the process.
var errorLog = errorlog.New(logs.Logger("k8singress.http"))

// account records a finished request in the metrics and, with one line, in the access log. Every code path that
// responds must call it exactly once per request, even if the request is rejected before its route is looked up. known
// is false if no Ingress defines the host of the request.
func account(table *live.Table, x *exchange.Exchange, began time.Time, known bool) {
	ended := time.Now()
	answer := x.Measure(began, ended)
	requests.record(answer.Status, answer.Took)
	if table.CountsRoutes() {
		x.Meter.Record(&answer)
	}
	if nginx := table.Meters().Nginx(); nginx != nil {
		details := x.Describe(&answer)
		nginx.Record(x.Meter, &details)
	}
	table.AccessLog().Record(x, ended, answer.Took, known)
}

// passedOn is in the context of each request that is passed to Caddy's HTTP server.
type passedOn struct {
	// request is the request that was passed on.
	request *message.Request
	// accounted is true once the function account has recorded the request.
	accounted bool
}

// passedOnKey is the key of the *passedOn in the context of a request.
type passedOnKey struct{}

// markAnswered must be called when the handler has responded to a request that it has got from Caddy's HTTP server. The
// request is recorded in the access log and the metrics. At the end of the request, the function that accountOthers
// returned then does not record it again.
func markAnswered(r *message.Request) {
	if p, ok := r.Context().Value(passedOnKey{}).(*passedOn); ok {
		p.accounted, p.request.Panicked = true, r.Panicked
	}
}

// accountOthers returns a function that must be called at the end of each request to Caddy's HTTP server. If the
// request was not recorded yet, the function adds it to the access log and the metrics. This is necessary if Caddy
// itself responds, for example to an ACME challenge.
func accountOthers(clients *realip.Policy, w message.Writer, r *message.Request) (end func(status int)) {
	p, began := &passedOn{request: r}, time.Now()
	r.SetContext(context.WithValue(r.Context(), passedOnKey{}, p))
	return func(status int) {
		if !p.accounted {
			accountBare(clients, w, r, status, began)
		}
	}
}

// accountedServer returns a handler that lets server handle requests and records the requests that do not reach the
// handler for Ingresses, for example because strict_sni_host rejects them. Requests of HTTP/1.1 are left to byCaddy,
// which records them. clients returns the policy that determines the client of a request.
//
// accountedServer returns nil if server has an access log of its own, which has a line for each request.
func accountedServer(server *caddyhttp.Server, clients func() *realip.Policy) http.Handler {
	if server.Logs != nil {
		return nil
	}
	handler := http.Handler(server)
	if server.Errors != nil {
		handler = accountErrorRoutes(server)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := r.Context().Value(passedOnKey{}).(*passedOn); ok {
			handler.ServeHTTP(w, r)
			return
		}
		request, writer, e := new(message.Request), message.NewHTTPWriter(w, r), newErrorResponse(w, r)
		request.FromHTTP(r)
		end := accountOthers(clients(), writer, request)
		defer func() {
			writer.Answered(nil, e.sent)
			end(e.status)
		}()
		handler.ServeHTTP(e, r.WithContext(request.Context()))
		e.count(0)
	})
}

// accountBare writes a line to the access log and updates the metrics for a request that was not looked up in the
// routing table. clients determines the client of the request.
func accountBare(clients *realip.Policy, w message.Writer, r *message.Request, status int, began time.Time) {
	table := runningTable()
	if table == nil {
		return
	}
	x := &exchange.Exchange{Request: r, Writer: w, Status: status, Clients: clients, Global: table.Global()}
	account(table, x, began, true)
}

// refuseBare responds with an error to a request that was not looked up in the routing table, and records it like
// accountBare. Without a running configuration, the response has no body, and is not recorded.
func refuseBare(x *exchange.Exchange, began time.Time, why *exchange.Failure, fields ...message.Field) {
	table := runningTable()
	if table != nil {
		x.Global, x.ErrorBodies = table.Global(), table.ErrorBodies()
		errorLog.Failed(x, why)
	}
	// The error is ignored, because a write only fails if the client has disconnected.
	_ = x.Refuse(why.Status, fields...)
	if table != nil {
		account(table, x, began, true)
	}
}

// runningTable returns the routing table of the running configuration, or nil if no configuration is running.
func runningTable() *live.Table {
	app, err := caddy.ActiveContext().AppIfConfigured("k8singress")
	if err != nil {
		return nil
	}
	return app.(*App).engine.Table()
}
