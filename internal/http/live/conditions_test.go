package live_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// when returns a route with conditions.
func when(c ir.Conditions, kind, path, answer string) *document.Route {
	r := route(kind, path, answer)
	r.Match = &c
	return r
}

// responseTo returns the response to a request, given as method, target and header fields.
func responseTo(t *testing.T, table *live.Table, request string) string {
	t.Helper()
	method, rest, _ := strings.Cut(request, " ")
	target, fields, _ := strings.Cut(rest, " ")
	r := httptest.NewRequest(method, "http://shop.example"+target, nil)
	for _, field := range strings.Split(fields, "; ") {
		if name, value, ok := strings.Cut(field, ": "); ok {
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	outcome, err := serve(table, w, prepared(r))
	switch {
	case err != nil:
		t.Fatalf("%s: %v", request, err)
	case outcome == live.NoHost:
		return "none"
	case w.Code == http.StatusServiceUnavailable:
		return "closed"
	}
	return w.Body.String()
}

// TestConditions checks that a request that does not meet the conditions of a route goes to the next route of the path,
// then to a shorter path, then to a regular expression.
func TestConditions(t *testing.T) {
	table := newTable(t)
	value := func(name, value string) []ir.ValueMatch { return []ir.ValueMatch{{Name: name, Value: value}} }
	pattern := func(name, value string) []ir.ValueMatch {
		return []ir.ValueMatch{{Name: name, Value: value, Regex: true}}
	}
	update(t, table, hostOf(
		when(ir.Conditions{Method: "POST"}, "exact", "/a", "post"),
		when(ir.Conditions{Headers: value("x-Version", "2"), Query: value("q", "a b")}, "prefix", "/a", "both"),
		when(ir.Conditions{Headers: pattern("X-Version", "^[0-9]+$")}, "prefix", "/a", "number"),
		when(ir.Conditions{Headers: pattern("X-Any", "")}, "prefix", "/a", "any"),
		when(ir.Conditions{Cookies: value("who", "me")}, "prefix", "/a", "cookie"),
		when(ir.Conditions{Headers: value("X-Root", "yes")}, "prefix", "/", "root"),
		when(ir.Conditions{Query: value("r", "1")}, "regex", "/a/[0-9]", "first regex"),
		route("regex", "/a/[0-9]", "second regex"),
		route("exact", "/b", "b"),
		when(ir.Conditions{Method: "GET"}, "exact", "/b", "never reached"),
	))
	for request, want := range map[string]string{
		"POST /a": "post", "GET /a": "none", "GET /a/1": "second regex", "GET /a/1?r=1": "first regex",
		"POST /a/x":                             "none",
		"GET /a?q=a+b X-Version: 2":             "both",
		"GET /a?x&q=a%20b&q=c X-Version: 2":     "both",
		"GET /a?q=c&q=a+b X-Version: 2":         "number",
		"GET /a/x?Q=a+b X-Version: 2":           "number",
		"GET /a X-Version: 2; X-Version: 3":     "none",
		"GET /a X-Any: ":                        "any",
		"GET /a Cookie: other=1, who=me":        "none",
		"GET /a Cookie: who=me":                 "cookie",
		"GET /a/x X-Root: yes":                  "root",
		"POST /a X-Root: yes; X-Version: 10":    "post",
		"GET /b":                                "b",
		"GET /a/2?q=a+b X-Version: x; X-Any: 1": "any",
	} {
		if got := responseTo(t, table, request); got != want {
			t.Errorf("%s answers %q, want %q", request, got, want)
		}
	}
}

// TestRegexesAmongPaths checks that of a regular expression and a path, the one that comes first in the document wins.
func TestRegexesAmongPaths(t *testing.T) {
	table := newTable(t)
	update(t, table, hostOf(
		route("exact", "/api/exact", "exact"), route("regex", "/api/(.*)", "long"), route("prefix", "/api", "prefix"),
		route("regex", "/ap.*", "short"), route("prefix", "/", "root"), route("regex", "/.*", "never reached"),
	))
	for request, want := range map[string]string{
		"GET /api/exact": "exact", "GET /api/x": "long", "GET /api": "prefix", "GET /apis": "short", "GET /x": "root",
		"GET /": "root",
	} {
		if got := responseTo(t, table, request); got != want {
			t.Errorf("%s answers %q, want %q", request, got, want)
		}
	}
}

// TestInvalidCondition checks that a route with an invalid condition is rejected, and that its path returns 503, so
// that no request reaches a route with fewer restrictions.
func TestInvalidCondition(t *testing.T) {
	table := newTable(t)
	table.Update(map[string]*document.Host{"shop.example": hostOf(
		when(ir.Conditions{Headers: []ir.ValueMatch{{Name: "X", Value: "(", Regex: true}}}, "prefix", "/a", "bad"),
		route("prefix", "/a", "behind it"), route("prefix", "/", "good"),
	)})
	if refused := table.Refused(); len(refused) != 1 ||
		!strings.Contains(refused[0].Err.Error(), "regular expression") {
		t.Errorf("refused is %v", refused)
	}
	for request, want := range map[string]string{"GET /a X: (": "closed", "GET /a/b": "closed", "GET /b": "good"} {
		if got := responseTo(t, table, request); got != want {
			t.Errorf("%s gets %s, want %s", request, got, want)
		}
	}
}

// TestSplitWithoutWeights checks that a split without weights is rejected, and that its path returns 503.
func TestSplitWithoutWeights(t *testing.T) {
	table := newTable(t)
	table.Update(map[string]*document.Host{"shop.example": hostOf(
		&document.Route{Type: "prefix", Path: "/", Split: []*document.Share{{Weight: 0}, {Weight: -1}}},
	)})
	if refused := table.Refused(); len(refused) != 1 {
		t.Errorf("refused is %v", refused)
	}
	if got := responseTo(t, table, "GET /"); got != "closed" {
		t.Errorf("the answer is %s", got)
	}
}

// TestWildcardsOfManyLabels checks that wildcards for one label win over wildcards for several labels, and of the
// latter the longest one.
func TestWildcardsOfManyLabels(t *testing.T) {
	table := newTable(t)
	hosts := map[string]*document.Host{}
	for _, name := range []string{"a.example", "*.example", "**.example", "**.b.example", "*.c.b.example"} {
		hosts[name] = hostOf(route("prefix", "/", name))
	}
	table.Update(hosts)
	for name, want := range map[string]string{
		"a.example": "a.example", "x.example": "*.example", "y.x.example": "**.example", "b.example": "*.example",
		"x.b.example": "**.b.example", "y.x.b.example": "**.b.example", "x.c.b.example": "*.c.b.example",
		"y.x.c.b.example": "**.b.example",
		"example":         "none", ".example": "none",
	} {
		if got := get(t, table, name, "/"); got != want {
			t.Errorf("%s is served as %s, want %s", name, got, want)
		}
	}
	table.Update(map[string]*document.Host{"**.example": nil, "**.b.example": nil})
	for _, name := range []string{"y.x.example", "x.b.example"} {
		if got := get(t, table, name, "/"); got != "none" {
			t.Errorf("%s is served as %s after its wildcard has gone", name, got)
		}
	}
}

// BenchmarkConditions requests the last of several routes of one path.
func BenchmarkConditions(b *testing.B) {
	for _, n := range []int{0, 16} {
		b.Run(fmt.Sprintf("conditions=%d", n), func(b *testing.B) {
			table := newTable(b)
			var routes []*document.Route
			for i := range n {
				r := route("prefix", "/", "x")
				r.Match = &ir.Conditions{Headers: []ir.ValueMatch{{Name: "X-Version", Value: fmt.Sprint(i)}}}
				routes = append(routes, r)
			}
			if n == 0 {
				routes = append(routes, route("prefix", "/", "x"))
			}
			table.Update(map[string]*document.Host{"shop.example": hostOf(routes...)})
			r := httptest.NewRequest(http.MethodGet, "http://shop.example/some/path", nil)
			r.Header.Set("X-Version", fmt.Sprint(n-1))
			r = prepared(r)
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				if outcome, err := serve(table, w, r); outcome != live.Served || err != nil {
					b.Fatal(outcome, err)
				}
			}
		})
	}
}

func prepared(r *http.Request) *http.Request {
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), &caddyhttp.Server{})
}
