package filter_test

import (
	"errors"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// statuses are settings of the rate limits below.
const statuses = `"status_code": 429, "connections_status_code": 509}`

var rateLimitCases = []filterCase{
	{
		name: "per minute", settings: `{"zone": "shop/web", "requests_per_minute": 1, "burst": 2, ` + statuses,
		requests: []requestCase{
			taken("192.0.2.1"), taken("192.0.2.1"), taken("192.0.2.1"), tooMany("192.0.2.1"), tooMany("192.0.2.1"),
			taken("192.0.2.2"), taken("2001:db8::1"), taken("2001:db8::1"), taken("2001:db8::1"),
			tooMany("2001:db8::1"), taken("2001:db8::2"),
			later(30*time.Second, tooMany("192.0.2.1")), later(33*time.Second, taken("192.0.2.1")),
			tooMany("192.0.2.1"),
			// Clients without an address share the limit.
			taken(unixSocket), taken(unixSocket), taken(unixSocket), tooMany(unixSocket),
		},
	},
	{
		name: "per second", settings: `{"zone": "shop/web", "requests_per_second": 1, "burst": 1, ` + statuses,
		requests: []requestCase{
			taken("192.0.2.1"), taken("192.0.2.1"), tooMany("192.0.2.1"), later(time.Second, taken("192.0.2.1")),
			tooMany("192.0.2.1"),
		},
	},
	{
		name: "no burst", settings: `{"zone": "shop/web", "requests_per_minute": 1, ` + statuses,
		requests: []requestCase{taken("192.0.2.1"), tooMany("192.0.2.1")},
	},
	{
		name: "networks without limits", settings: `{"zone": "shop/web", "requests_per_minute": 1, "connections": 1,
			"exempt": ["198.51.100.0/24"], ` + statuses,
		requests: []requestCase{
			taken("198.51.100.1"), taken("198.51.100.1"), taken("::ffff:198.51.100.1"), taken("192.0.2.1"),
			tooMany("192.0.2.1"),
		},
	},
	{
		name: "another key", settings: `{"zone": "shop/web", "requests_per_minute": 1,
			"key": "$http_x_api_key", ` + statuses,
		requests: []requestCase{
			passes("GET http://shop.example/ | X-API-Key: a"),
			passes("GET http://shop.example/ | X-API-Key: b"),
			{client: "192.0.2.9", request: "GET http://shop.example/ | X-API-Key: a", response: "429"},
			// As in nginx, clients with an empty key are not limited.
			taken("192.0.2.1"), taken("192.0.2.1"),
		},
	},
	{
		name: "connections", settings: `{"zone": "shop/web", "connections": 2, ` + statuses,
		requests: []requestCase{
			taken("192.0.2.1"), taken("192.0.2.1"), taken("192.0.2.1"), stays("192.0.2.1"), taken("192.0.2.1"),
			stays("192.0.2.1"),
			{client: "192.0.2.1", request: "GET http://shop.example/", response: "509"},
			taken("192.0.2.2"),
		},
	},
	{
		name: "connections and requests", settings: `{"zone": "shop/web", "requests_per_minute": 1, "burst": 1,
			"connections": 1, ` + statuses,
		requests: []requestCase{
			stays("192.0.2.1"),
			{client: "192.0.2.1", request: "GET http://shop.example/", response: "509"},
			// As in nginx, the rate is checked first.
			tooMany("192.0.2.1"),
		},
	},
	{name: "no limit", settings: `{"zone": "shop/web", "burst": 5, ` + statuses, requests: []requestCase{
		taken("192.0.2.1"), taken("192.0.2.1"),
	}},
	rejected("no zone", `{"requests_per_minute": 1}`, "the rate limit has no zone"),
	rejected("an invalid network", `{"zone": "a", "exempt": ["all"]}`, `"all" is not a network`),
	rejected("a variable of the response", `{"zone": "a", "key": "$status"}`, "no variable $status"),
}

func taken(client string) requestCase {
	return requestCase{client: client, request: "GET http://shop.example/", next: same, response: "200"}
}

func tooMany(client string) requestCase {
	return requestCase{client: client, request: "GET http://shop.example/", response: "429"}
}

// later returns a request that is sent some time after the request before.
func later(after time.Duration, r requestCase) requestCase {
	r.after = after
	return r
}

// stays returns a request that does not end.
func stays(client string) requestCase {
	r := taken(client)
	r.open = true
	return r
}

// TestRateLimitErrorPages checks that a request over the limit may get an error page instead of an empty response.
func TestRateLimitErrorPages(t *testing.T) {
	f := newEnvironment(t).newFilter(t, "k8singress_rate_limit",
		`{"zone": "shop/web", "requests_per_minute": 1, "status_code": 503}`)
	for _, want := range []error{nil, exchange.ErrRejected} {
		x, response := exchangetest.New(t, "GET http://shop.example/")
		x.Pages = []int{503}
		if responded, err := f.Apply(x); responded || !errors.Is(err, want) || response.Started() {
			t.Errorf("responded %t with %q, %v, want %v", responded, response, err, want)
		}
	}
}

// TestRateLimitZones checks that the filters of a zone share its counters, and that other zones have their own.
func TestRateLimitZones(t *testing.T) {
	env := newEnvironment(t)
	newLimit := func(zone string) func() int {
		f := env.newFilter(t, "k8singress_rate_limit",
			`{"zone": "`+zone+`", "requests_per_minute": 1, "status_code": 429}`)
		return func() int {
			x, response := (&requestCase{request: "GET http://shop.example/"}).exchange(t, nil)
			(&requestCase{}).serve(t, x, f)
			return response.Response.Status
		}
	}
	first, second, other := newLimit("shop/web"), newLimit("shop/web"), newLimit("shop/other")
	if a, b, c := first(), second(), other(); a != 200 || b != 429 || c != 200 {
		t.Errorf("the statuses are %d, %d in the same zone, and %d in another zone", a, b, c)
	}
}
