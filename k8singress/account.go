package k8singress

import (
	"context"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
)

// account records a finished request with one line in the access log and in the metrics. Every code path that responds
// calls it exactly once per request, including requests rejected before their route was looked up. The recorded status
// is x's, or err's if the response to err has yet to be written. known is false if no Ingress defines the host of the
// request.
func account(table *live.Table, x *exchange.Exchange, began time.Time, known bool, err error) {
	if err != nil && !x.Writer.Started() {
		x.Status = exchange.StatusOf(err)
	}
	requests.record(x.Status, began)
	table.AccessLog().Record(x, began, known)
}

// accountedKey is the context key of a *bool in requests that a Caddy server handles. markAccounted sets the bool.
type accountedKey struct{}

// markAccounted records that account was called for the request with this context. accountOthers then does nothing.
func markAccounted(ctx context.Context) {
	if accounted, ok := ctx.Value(accountedKey{}).(*bool); ok {
		*accounted = true
	}
}

// accountOthers returns a function that records a request unless it has already been recorded. Caddy itself responds to
// some requests, such as challenges of certificate authorities.
func accountOthers(w message.Writer, r *message.Request) (end func(status int)) {
	accounted, began := new(bool), time.Now()
	r.SetContext(context.WithValue(r.Context(), accountedKey{}, accounted))
	return func(status int) {
		if !*accounted {
			accountBare(w, r, status, began)
		}
	}
}

// accountBare records a request that was not routed.
func accountBare(w message.Writer, r *message.Request, status int, began time.Time) {
	table := runningTable()
	if table == nil {
		return
	}
	x := &exchange.Exchange{Request: r, Writer: w, Status: status, Clients: table.Clients(), Global: table.Global()}
	account(table, x, began, true, nil)
}

// runningTable returns the table of the running configuration, or nil.
func runningTable() *live.Table {
	app, err := caddy.ActiveContext().AppIfConfigured("k8singress")
	if err != nil {
		return nil
	}
	return app.(*App).engine.Table()
}
