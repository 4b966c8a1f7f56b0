package exchange_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/meter"
)

// TestMeasureAddsUp checks that attempts and bytes of all routes and error pages of a request count, because its
// response counts only once.
func TestMeasureAddsUp(t *testing.T) {
	attempts := func(x *exchange.Exchange, statuses ...int) {
		for _, status := range statuses {
			x.Next()
			x.Connected(time.Second)
			<-time.After(time.Second) // The test uses the fake clock of synctest.
			if status == http.StatusOK {
				x.ResponseStarted(time.Time{})
				x.SetResponseStatus(status)
			}
			x.Done(status != http.StatusOK)
		}
	}
	another := func(x *exchange.Exchange) {
		arrival := x.Arrival()
		x.Close()
		x.Reroute(arrival)
	}
	for name, c := range map[string]struct {
		do        func(x *exchange.Exchange)
		addresses string
		want      meter.Answer
		// has, connect and served are the fields of meter.Details, and the address of the endpoint of the last route.
		has     bool
		connect time.Duration
		served  string
	}{
		"nothing": {func(*exchange.Exchange) {}, "", meter.Answer{}, false, 0, ""},
		"one route": {func(x *exchange.Exchange) { attempts(x, 502, 200) }, "a:1, a:1",
			meter.Answer{Took: 2 * time.Second, FirstByte: 2 * time.Second, Retries: 1}, true, time.Second, "a:1"},
		"another route with an endpoint": {func(x *exchange.Exchange) {
			attempts(x, 502, 502)
			x.Received, x.Relayed = 3, 4
			another(x)
			x.Backend = newBackend(nil, "b:1")
			attempts(x, 502, 502, 200)
			x.Received++
		}, "a:1, a:1 : b:1, b:1, b:1", meter.Answer{
			Took: 5 * time.Second, FirstByte: 5 * time.Second, Retries: 3, Received: 4, Sent: 4,
		}, true, time.Second, "b:1"},
		"another route without an endpoint": {func(x *exchange.Exchange) {
			attempts(x, 502, 200)
			another(x)
			<-time.After(time.Second) // The test uses the fake clock of synctest.
		}, "a:1, a:1", meter.Answer{
			Took: 3 * time.Second, FirstByte: 3 * time.Second, Retries: 1,
		}, true, time.Second, ""},
		"an error page": {func(x *exchange.Exchange) {
			attempts(x, 502, 502)
			page := x.ErrorPage(&exchange.Page{Backend: newBackend(nil, "b:1"), Status: http.StatusBadGateway})
			attempts(page, 502, 200)
			page.Conclude(nil)
			page.Close()
			x.EndErrorPage(page)
		}, "a:1, a:1 : b:1, b:1", meter.Answer{
			Took: 4 * time.Second, FirstByte: 4 * time.Second, Retries: 2,
		}, true, time.Second, "a:1"},
		"an error page without endpoints": {func(x *exchange.Exchange) {
			attempts(x, 200)
			page := x.ErrorPage(&exchange.Page{Backend: newBackend(nil), Status: http.StatusBadGateway})
			attempts(page)
			x.EndErrorPage(page)
		}, "a:1", meter.Answer{Took: time.Second, FirstByte: time.Second}, true, time.Second, "a:1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := toBackend(t, newBackend(nil, "a:1"))
			began := time.Now()
			c.do(x)
			x.Close()
			got := x.Measure(began, time.Now())
			if got != c.want {
				t.Errorf("%s: the answer is %+v, want %+v", name, got, c.want)
			}
			if d := x.Describe(&got); d.HasAttempt != c.has || d.Connect != c.connect {
				t.Errorf("%s: the details are %+v", name, d)
			}
			if all := x.Variable("upstream_addr"); all != c.addresses {
				t.Errorf("%s: the addresses are %q, want %q", name, all, c.addresses)
			}
			served := x.Served()
			if at := served.Address(); at != c.served || served.Attempt.Address != at {
				t.Errorf("%s: served by %q, the attempt is %+v", name, at, served.Attempt)
			}
		})
	}
}
