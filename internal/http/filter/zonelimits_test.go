package filter_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// perMinute and perTenant are limits of requests with zones of one request per minute.
const (
	perMinute = `{"zone": {"name": "minute", "requests_per_minute": 1, "max_clients": 512}}`
	perTenant = `{"zone": {"name": "tenant", "key": "$http_x_tenant", "requests_per_minute": 1, "max_clients": 512},
		"burst": 1, "undelayed": 1}`
)

var zoneLimitsCases = []filterCase{
	{
		name: "a rate", settings: `{"requests": [` + perMinute + `]}`,
		requests: []requestCase{
			taken("192.0.2.1"), {client: "192.0.2.1", request: "GET http://shop.example/", response: "503"},
			taken("192.0.2.2"), later(63*time.Second, taken("192.0.2.1")),
		},
	},
	{
		name: "a key", settings: `{"requests": [` + perTenant + `], "status_code": 429, "default_status_code": 420}`,
		requests: []requestCase{
			passes("GET http://shop.example/ | X-Tenant: a"), passes("GET http://shop.example/ | X-Tenant: a"),
			gets("GET http://shop.example/ | X-Tenant: a", "429"), passes("GET http://shop.example/ | X-Tenant: b"),
			// As in nginx, clients with an empty key are not limited.
			taken("192.0.2.1"), taken("192.0.2.1"), taken("192.0.2.1"),
		},
	},
	{
		// A request that exceeds one limit does not count for the other.
		name: "two rates", settings: `{"requests": [` + perMinute + `,` + perTenant + `], "default_status_code": 429}`,
		requests: []requestCase{
			{client: "192.0.2.1", request: "GET http://a.example/ | X-Tenant: a", next: same, response: "200"},
			{client: "192.0.2.1", request: "GET http://a.example/ | X-Tenant: a", response: "429"},
			{client: "192.0.2.2", request: "GET http://a.example/ | X-Tenant: a", next: same, response: "200"},
			{client: "192.0.2.3", request: "GET http://a.example/ | X-Tenant: a", response: "429"},
			taken("192.0.2.3"),
		},
	},
	{
		name: "connections", settings: `{"connections": [{"zone": {"name": "a"}, "max": 2},
			{"zone": {"name": "a", "key": "$host"}, "max": 3}], "default_connections_status_code": 509}`,
		requests: []requestCase{
			stays("192.0.2.1"), taken("192.0.2.1"), stays("192.0.2.1"),
			{client: "192.0.2.1", request: "GET http://shop.example/", response: "509"},
			stays("192.0.2.2"),
			{client: "192.0.2.3", request: "GET http://shop.example/", response: "509"},
			{client: "192.0.2.3", request: "GET http://other.example/", next: same, response: "200"},
		},
	},
	{
		name: "a status for connections", settings: `{"connections": [{"zone": {"name": "a"}, "max": 1}],
			"connections_status_code": 429, "default_connections_status_code": 509}`,
		requests: []requestCase{stays("192.0.2.1"), tooMany("192.0.2.1")},
	},
	{
		name: "dry runs", settings: `{"requests": [` + perMinute + `], "dry_run": true,
			"connections": [{"zone": {"name": "a"}, "max": 1}], "connections_dry_run": true}`,
		requests: []requestCase{stays("192.0.2.1"), taken("192.0.2.1")},
	},
	rejected("no rate", `{"requests": [{"zone": {"name": "a", "max_clients": 1}}]}`, "a zone with one rate"),
	rejected("no zone of requests", `{"requests": [{"zone": {"requests_per_second": 1}}]}`, "a zone with one rate"),
	rejected("two rates of a zone", `{"requests": [{"zone": {"name": "a", "requests_per_second": 1,
		"requests_per_minute": 1}}]}`, "a zone with one rate"),
	rejected("no zone of connections", `{"connections": [{"max": 1}]}`, "needs a zone"),
	rejected("no connections", `{"connections": [{"zone": {"name": "a"}}]}`, "a positive number"),
	rejected("a variable of the response", `{"connections": [{"zone": {"name": "a", "key": "$status"}, "max": 1}]}`,
		"no variable $status"),
}

// TestDelayedRequests checks that requests beyond a rate wait, and that the wait ends if the client disconnects.
func TestDelayedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newEnvironment(t).newFilter(t, "k8singress_zone_limits", `{"requests": [{"zone": {"name": "a",
			"requests_per_second": 2, "max_clients": 512}, "burst": 10, "undelayed": 1}]}`)
		var waited []time.Duration
		for range 4 {
			x, _ := exchangetest.New(t, "GET http://shop.example/")
			began := time.Now()
			if responded, err := f.Apply(x); responded || err != nil {
				t.Errorf("responded %t, %v", responded, err)
			}
			waited = append(waited, time.Since(began))
		}
		// While the third request waits, the client has already come back to one request beyond its rate.
		want := []time.Duration{0, 0, 500 * time.Millisecond, 500 * time.Millisecond}
		for i := range want {
			if waited[i] != want[i] {
				t.Errorf("the requests wait %v, want %v", waited, want)
				break
			}
		}
		x, _ := exchangetest.New(t, "GET http://shop.example/")
		gone := errors.New("the client has disconnected")
		ctx, cancel := context.WithCancelCause(t.Context())
		x.SetContext(ctx)
		time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
		began := time.Now()
		_, err := f.Apply(x)
		if took := time.Since(began); exchange.StatusOf(err) != exchange.ClientGone || !errors.Is(err, gone) ||
			took != 100*time.Millisecond {
			t.Errorf("after %v, the error is %v", took, err)
		}
	})
}

// TestZonesOfFilters checks that the filters with equal zones share their counters, also if other settings
// differ.
func TestZonesOfFilters(t *testing.T) {
	env := newEnvironment(t)
	var statuses [3]int
	for i, settings := range []string{
		`{"requests": [` + perMinute + `]}`, `{"requests": [` + perMinute + `], "status_code": 429}`,
		`{"requests": [{"zone": {"name": "minute", "key": "$http_x_tenant", "requests_per_minute": 1,
			"max_clients": 512}}]}`,
	} {
		f := env.newFilter(t, "k8singress_zone_limits", settings)
		// A zone exists as long as one of its filters.
		defer runtime.KeepAlive(f)
		x, response := (&requestCase{request: "GET http://shop.example/ | X-Tenant: a"}).exchange(t, nil)
		(&requestCase{}).serve(t, x, f)
		statuses[i] = response.Response.Status
	}
	if statuses != [3]int{200, 429, 200} {
		t.Errorf("the statuses are %v, of two filters with the same zone, and of one with another key", statuses)
	}
}

// TestLimitsApplyOnce checks that a client beyond a limit gets an error page to which the same limit applies, and that
// a request counts once, as in nginx. The error page of another namespace has limits of its own.
func TestLimitsApplyOnce(t *testing.T) {
	for name, c := range map[string]struct{ filter, settings string }{
		"limit-rpm": {"k8singress_rate_limit", `{"zone": "a", "requests_per_minute": 1, "status_code": 429}`},
		"limit-connections": {"k8singress_rate_limit",
			`{"zone": "a", "connections": 1, "connections_status_code": 429}`},
		"limit_req": {"k8singress_zone_limits", `{"requests": [` + perMinute + `], "status_code": 429}`},
		"two limit_req": {"k8singress_zone_limits",
			`{"requests": [` + perMinute + `, ` + perTenant + `], "status_code": 429}`},
		"limit_conn": {"k8singress_zone_limits",
			`{"connections": [{"zone": {"name": "a"}, "max": 1}], "connections_status_code": 429}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEnvironment(t).newFilter(t, c.filter, c.settings)
			pages, err := exchange.NewDirectives(&ir.Directives{Errors: ir.ErrorHandling{
				Pages: []ir.ErrorPage{{Statuses: []int{429, 404}, Target: "/page"}}}})
			if err != nil {
				t.Fatal(err)
			}
			apply := func(x *exchange.Exchange, want int) error {
				t.Helper()
				x.UseDirectives(pages)
				responded, err := f.Apply(x)
				status := http.StatusOK
				if responded {
					status = x.Status
				} else if err != nil {
					status = exchange.StatusOf(err)
				}
				if status != want {
					t.Errorf("the status is %d, %v, want %d", status, err, want)
				}
				return err
			}
			fail := func(x *exchange.Exchange, at exchange.Arrival, err error) {
				t.Helper()
				if err = x.PassToErrorPage(err); !errors.Is(err, exchange.ErrReroute) {
					t.Fatal(err)
				}
				x.Reroute(at)
			}
			first, _ := exchangetest.New(t, "GET http://shop.example/ | X-Tenant: a")
			at := first.Arrival()
			_ = apply(first, 200)
			fail(first, at, exchange.Fail(404, nil))
			if name != "limit-connections" && name != "limit_conn" {
				_ = apply(first, 200)
			}
			second, _ := exchangetest.New(t, "GET http://shop.example/ | X-Tenant: a")
			at = second.Arrival()
			fail(second, at, apply(second, 429))
			_ = apply(second, 200)
			second.ChangeNamespace(false)
			_ = apply(second, 429)
		})
	}
}
