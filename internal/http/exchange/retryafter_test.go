package exchange_test

import (
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// TestRetryAfter checks which responses get the Retry-After header of the route: only those with status 503 that the
// controller itself sends.
func TestRetryAfter(t *testing.T) {
	type sender func(x *exchange.Exchange) error
	respond := func(status int) sender {
		return func(x *exchange.Exchange) error { return x.Respond(status, "") }
	}
	refuse := func(status int) sender {
		return func(x *exchange.Exchange) error { return x.Writer.Head(x.Refusal(status)) }
	}
	pass := func(head string) sender {
		return func(x *exchange.Exchange) error { return x.Head(exchangetest.Response(t, head)) }
	}
	page := func(p exchange.Page, head string) sender {
		p.Backend = balancer.New("shop/pages/80")
		return func(x *exchange.Exchange) error { return x.ErrorPage(&p).Head(exchangetest.Response(t, head)) }
	}
	for name, c := range map[string]struct {
		prepare func(x *exchange.Exchange)
		send    sender
		want    string
	}{
		"a response":         {nil, respond(503), "503 | Retry-After: 90"},
		"another status":     {nil, respond(429), "429"},
		"a failure":          {nil, refuse(503), "503 | Retry-After: 90"},
		"another failure":    {nil, refuse(502), "502"},
		"of an endpoint":     {nil, pass("503"), "503"},
		"a page":             {nil, page(exchange.Page{Status: 503, Own: true}, "503"), "503 | Retry-After: 90"},
		"a page of another":  {nil, page(exchange.Page{Status: 503, Own: true}, "200"), "200"},
		"a page for another": {nil, page(exchange.Page{Status: 404, Own: true}, "503"), "503"},
		"for an endpoint":    {nil, page(exchange.Page{Status: 503}, "503"), "503"},
		"a page with a value": {nil, page(exchange.Page{Status: 503, Own: true}, "503 | retry-after: 5"),
			"503 | retry-after: 5"},
		"a page that keeps the status": {nil, page(exchange.Page{Status: 503, Own: true, KeepStatus: true}, "200"),
			"503 | Retry-After: 90"},
		"without the setting": {func(x *exchange.Exchange) { x.Route.RetryAfter = 0 }, refuse(503), "503"},
		"without a route":     {func(x *exchange.Exchange) { x.Route = nil }, refuse(503), "503"},
		"a value of a handler": {func(x *exchange.Exchange) {
			x.ErrorFields = exchangetest.Fields("retry-after: 5")
		}, refuse(503), "503 | retry-after: 5"},
		"a value of the administrator": {func(x *exchange.Exchange) {
			x.ForAllResponses = exchange.Changes{setting("Retry-After", "7")}
		}, refuse(503), "503 | Retry-After: 7"},
	} {
		t.Run(name, func(t *testing.T) {
			x, response := exchangetest.New(t, "GET http://shop.example/")
			x.Route.RetryAfter = 90 * time.Second
			if c.prepare != nil {
				c.prepare(x)
			}
			if err := c.send(x); err != nil || response.String() != c.want {
				t.Errorf("the client gets %q, %v, want %q", response, err, c.want)
			}
		})
	}
}
