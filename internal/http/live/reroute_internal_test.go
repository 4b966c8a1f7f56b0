package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/meter"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// rewriteTo asks for the route of another path.
func rewriteTo(path string) script {
	return func(x *exchange.Exchange) (bool, error) {
		x.SetPath(path)
		return false, exchange.ErrReroute
	}
}

// TestReroute checks what a request keeps when it gets another route, and what it does not keep.
func TestReroute(t *testing.T) {
	var closed bool
	change := &message.Changes{Set: []message.Field{message.NewField("X-First", "a")}}
	first := func(x *exchange.Exchange) (bool, error) {
		x.ChangeResponse(change)
		x.ForAllResponses = exchange.Changes{change}
		x.ForEndpoint.Add(message.NewField("X-First", "a"))
		x.ErrorFields.Add(message.NewField("X-First", "a"))
		x.Fields.Add(message.NewField("X-Input", "a"))
		x.AtEnd(func() { closed = true })
		x.Host, x.Writer, x.Pages = "backend.example", &exchangetest.Recorder{}, []int{http.StatusNotFound}
		x.SetPath("/b/ü")
		x.Query = "y=2"
		return false, fmt.Errorf("rewriting: %w", exchange.ErrReroute)
	}
	second := func(x *exchange.Exchange) (bool, error) {
		body := make([]byte, 4)
		n, _ := x.Body.Read(body)
		for _, c := range []struct{ name, got, want string }{
			{"host", x.Host, "shop.example"}, {"path", x.Path, "/b/ü"}, {"target", x.Target, "/a?x=1"},
			{"uri", x.Variable("uri"), "/b/ü"}, {"request_uri", x.Variable("request_uri"), "/a?x=1"},
			{"sent target", x.OutTarget(), "/b/%C3%BC?y=2"}, {"ingress", x.Variable("ingress_name"), "b"},
			{"body", string(body[:n]), "text"}, {"input", x.Variable("http_x_input"), "a"},
			{"fields", exchangetest.Text(slices.Concat(x.ForEndpoint, x.ErrorFields)), ""},
		} {
			if c.got != c.want {
				t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
			}
		}
		if !closed {
			t.Error("the limits of the first route still count the request")
		}
		return x.Reject(exchange.Rejection(http.StatusNotFound, "no"))
	}
	table := scriptedTable(t, routesOf("/a", "/b"), map[string]script{"/a": first, "/b": second})
	x, w := exchangetest.New(t, "POST http://shop.example/a?x=1")
	exchangetest.SetBody(x, "text")
	server := &message.Changes{Set: []message.Field{message.NewField("X-Server", "s")}}
	x.ForAllResponses = exchange.Changes{server}
	outcome, err := table.Serve(x)
	if got := w.String(); outcome != Served || err != nil || got != "404 | X-Server: s" {
		t.Errorf("outcome %d, %v, response %q", outcome, err, got)
	}
	if x.Route == nil || x.Route.Path != "/b" {
		t.Errorf("the route is %+v", x.Route)
	}
}

// TestRerouteEnds checks where a request ends whose first route leads to another path.
func TestRerouteEnds(t *testing.T) {
	host := routesOf("/start", "/open", "/admin", "/secure")
	host.Routes[2].Access = "password"
	host.Routes[3].HTTPSRedirect = &ir.HTTPSRedirect{Status: http.StatusPermanentRedirect}
	for name, c := range map[string]struct{ to, want string }{
		"a route":           {"/open/x", "200 | Route: /open"},
		"a dirty path":      {"//open", "200 | Route: /open"},
		"the same route":    {"/start", "error 500"},
		"no route":          {"/other", "outcome 2"},
		"to HTTPS":          {"/secure", "308 | Location: https://shop.example/start/?q=1"},
		"another reading":   {"/open/..;/admin", "error 400"},
		"a guarded reading": {"/admin/..;/admin", "200 | Route: /admin"},
	} {
		t.Run(name, func(t *testing.T) {
			table := scriptedTable(t, host, map[string]script{"/start": rewriteTo(c.to)})
			if got, _, err := ask(t, table, "GET http://shop.example/start/?q=1"); got != c.want {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestRerouteCycle checks that a request gets another route ten times at most.
func TestRerouteCycle(t *testing.T) {
	for _, c := range []struct {
		times int
		want  string
	}{{10, "200 | Route: /a"}, {11, "error 500"}} {
		runs := 0
		again := func(x *exchange.Exchange) (bool, error) {
			if runs++; runs > c.times {
				return respond(x)
			}
			return rewriteTo([]string{"/a", "/b"}[runs%2])(x)
		}
		table := scriptedTable(t, routesOf("/a", "/b"), map[string]script{"/a": again, "/b": again})
		got, x, err := ask(t, table, "GET http://shop.example/b")
		if got != c.want || runs != 11 || (err != nil) != strings.HasPrefix(c.want, "error") {
			t.Errorf("%d times: %q after %d runs, %v", c.times, got, runs, err)
		}
		if err != nil && (!strings.HasSuffix(err.Error(), "rewrite cycle: the path was rewritten too often, "+
			"each time for another route: /b") || x.Route == nil) {
			t.Errorf("the error is %q, the route %+v", err, x.Route)
		}
	}
}

// TestReroutePassesNothingOn checks that a request without a route after a rewrite is not passed to the next Caddy
// handler, which would get the path from before the rewrite.
func TestReroutePassesNothingOn(t *testing.T) {
	table := scriptedTable(t, routesOf("/a"), map[string]script{"/a": rewriteTo("/other")})
	for path, want := range map[string]string{"/a": "0 no Ingress has the rewritten path", "/other": "2 <nil>"} {
		x, _ := exchangetest.New(t, "GET http://shop.example"+path)
		x.PassesOn = true
		outcome, err := table.Serve(x)
		if got := fmt.Sprintf("%d %v", outcome, err); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestRerouteClientAuth checks that a request that needs no client certificate, because its path is for ACME
// challenges, needs a certificate after a rewrite to another path.
func TestRerouteClientAuth(t *testing.T) {
	const challenge = "/.well-known/acme-challenge"
	host := routesOf(challenge, "/a")
	host.ClientAuth = &ir.ClientAuth{Secret: ir.Name{Namespace: "shop", Name: "ca"}, Verify: "on"}
	for to, want := range map[string]string{
		"/a": "403", challenge + "/token": "200 | Route: " + challenge,
	} {
		table := scriptedTable(t, host, map[string]script{challenge: func(x *exchange.Exchange) (bool, error) {
			if x.Path == challenge+"/first" {
				return rewriteTo(to)(x)
			}
			return respond(x)
		}})
		if got, _, err := ask(t, table, "GET http://shop.example"+challenge+"/first"); got != want {
			t.Errorf("%s: %q, %v, want %q", to, got, err, want)
		}
	}
}

// TestRerouteOfStream checks that the stream of the first route has ended when the second route serves the request, and
// that the context of the request goes on.
func TestRerouteOfStream(t *testing.T) {
	var table *Table
	open := func(path string) int {
		for _, r := range table.index.Load().find("shop.example").all {
			if r.Path == path {
				return len(r.streams.snapshot())
			}
		}
		return -1
	}
	table = scriptedTable(t, routesOf("/a", "/b"), map[string]script{
		"/a": func(x *exchange.Exchange) (bool, error) {
			if open("/a") != 1 {
				t.Error("the first route has no stream")
			}
			return rewriteTo("/b")(x)
		},
		"/b": func(x *exchange.Exchange) (bool, error) {
			if open("/a") != 0 || open("/b") != 1 || x.Context().Err() != nil {
				t.Errorf("the routes have %d and %d streams, context %v", open("/a"), open("/b"), x.Context().Err())
			}
			return respond(x)
		},
	})
	if got, _, err := ask(t, table, "GET http://shop.example/a | Upgrade: websocket"); got != "200 | Route: /b" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestRerouteAfterResponse checks that a filter that responds and then asks for another route aborts the response.
func TestRerouteAfterResponse(t *testing.T) {
	table := scriptedTable(t, routesOf("/a", "/b"), map[string]script{"/a": func(x *exchange.Exchange) (bool, error) {
		_, _ = respond(x)
		return rewriteTo("/b")(x)
	}})
	if got, x, err := ask(t, table, "GET http://shop.example/a"); !errors.Is(err, exchange.ErrAborted) ||
		x.Route.Path != "/a" {
		t.Errorf("%q, route %+v, %v", got, x.Route, err)
	}
}

// rerouteBenchmarks are requests that get one route, and requests that get another route.
var rerouteBenchmarks = map[string]string{"one route": "/b", "two routes": "/a"}

// serveAgain returns a function that serves a request for one of the paths in rerouteBenchmarks. It uses the same
// memory each time.
func serveAgain(t testing.TB, path string) func() {
	table := scriptedTable(t, routesOf("/a", "/b"), map[string]script{"/a": rewriteTo("/b")})
	x, w := exchangetest.New(t, "GET http://shop.example"+path)
	x.SetContextFunc(func() context.Context {
		t.Error("the request gets a context, which needs memory")
		return t.Context()
	})
	first := *x
	return func() {
		*x, *w = first, exchangetest.Recorder{}
		x.SetPath(path)
		if _, err := table.Serve(x); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRerouteDoesNotAllocate checks that the search for another route needs no memory.
func TestRerouteDoesNotAllocate(t *testing.T) {
	if pools.Checking {
		t.Skip("with the race detector, a sync.Pool drops some values")
	}
	allocations := map[string]float64{}
	for name, path := range rerouteBenchmarks {
		allocations[name] = testing.AllocsPerRun(100, serveAgain(t, path))
	}
	if allocations["one route"] != allocations["two routes"] {
		t.Errorf("requests need %v allocations", allocations)
	}
}

// BenchmarkReroute measures requests that get one route, and requests that get another route.
func BenchmarkReroute(b *testing.B) {
	for name, path := range rerouteBenchmarks {
		b.Run(name, func(b *testing.B) {
			serve := serveAgain(b, path)
			b.ReportAllocs()
			for b.Loop() {
				serve()
			}
		})
	}
}

// TestRerouteCountsOnce checks that a response counts for the last route of an object that the request got. The default
// backend has no counters of its own.
func TestRerouteCountsOnce(t *testing.T) {
	const fallback = "Service/shop/default/80"
	var table *Table
	meterOf := func(path string) *meter.Route {
		for _, r := range table.index.Load().find("shop.example").all {
			if r.Path == path {
				return r.meter
			}
		}
		return nil
	}
	for name, c := range map[string]struct{ sent, counts, want string }{
		"one route":                       {"/a", "/a", "200 | Route: /a"},
		"another route":                   {"/to-a", "/a", "200 | Route: /a"},
		"the default backend":             {"/nowhere", "", "200 | Route: /"},
		"a route, then the default":       {"/to-nowhere", "/to-nowhere", "200 | Route: /"},
		"two routes, and then no backend": {"/to-to-nowhere", "/to-nowhere", "outcome 2"},
	} {
		t.Run(name, func(t *testing.T) {
			table = scriptedTable(t, routesOf("/a", "/to-a", "/to-nowhere", "/to-to-nowhere"), map[string]script{
				"/to-a": rewriteTo("/a"), "/to-nowhere": rewriteTo("/nowhere"),
				"/to-to-nowhere": rewriteTo("/to-nowhere"),
			})
			if c.want != "outcome 2" {
				table.setDefault(fallback)
				to := table.global.fallback.Load()
				to.backend.SetEndpoints([]ir.Endpoint{{Address: "127.0.0.1:1"}})
				to.chain.current.Load().steps = []step{{filter: script(func(x *exchange.Exchange) (bool, error) {
					if x.Meter != nil && x.Meter.Totals().InFlight != 1 {
						t.Error("the request is not in flight")
					}
					return respond(x)
				})}}
			}
			got, x, err := ask(t, table, "GET http://shop.example"+c.sent)
			if got != c.want || err != nil {
				t.Errorf("the response is %q, error %v", got, err)
			}
			if want := meterOf(c.counts); x.Meter != want {
				t.Errorf("the response does not count for the path %q: %+v", c.counts, x.Meter)
			}
		})
	}
}
