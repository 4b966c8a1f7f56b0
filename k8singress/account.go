package k8singress

import (
	"context"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/message"
)

// account records a request that has been answered: by one line in the access log, and in the metrics. Every way to answer calls it once for
// each request, also for one that was refused before its route was looked for. The status is that of x, or that of err if the answer to it is
// still to be written. known is false if no Ingress has the host of the request.
func account(table *live.Table, x *exchange.Exchange, began time.Time, known bool, err error) {
	if err != nil && !x.Writer.Started() {
		x.Status = exchange.StatusOf(err)
	}
	requests.note(x.Status, began)
	table.AccessLog().Note(x, began, known)
}

// accountedKey is the key of a *bool in the context of a request that a server of Caddy answers. markAccounted sets it.
type accountedKey struct{}

// markAccounted tells accountOthers that account has recorded the request with this context.
func markAccounted(ctx context.Context) {
	if accounted, ok := ctx.Value(accountedKey{}).(*bool); ok {
		*accounted = true
	}
}

// accountOthers returns a function that records a request if nothing else has recorded it until then: Caddy itself answers some, such as
// challenges of certificate authorities.
func accountOthers(w message.Writer, r *message.Request) (end func(status int)) {
	accounted, began := new(bool), time.Now()
	r.SetContext(context.WithValue(r.Context(), accountedKey{}, accounted))
	return func(status int) {
		if !*accounted {
			accountBare(w, r, status, began)
		}
	}
}

// accountBare records a request that met no route.
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
