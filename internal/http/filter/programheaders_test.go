package filter_test

import (
	"testing"
	"testing/synctest"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// passed returns a request that reaches the next handler unchanged, with the response of this handler and the response
// to the client.
func passed(backend, response string) requestCase {
	return requestCase{request: "GET http://shop.example/?q=1", next: same, backend: backend, response: response}
}

const clock = "Sat, 01 Jan 2000 00:00:00 GMT"

var programHeaderCases = []filterCase{
	{name: "add_header", settings: `{"add_headers": [
		{"name": "A", "value": "$arg_q$nothing"}, {"name": "B", "value": "b", "always": true},
		{"name": "C", "value": "$nothing"}]}`,
		requests: []requestCase{
			passed("200 | A: 0", "200 | A: 0 | A: 1 | B: b"), passed("404", "404 | B: b"),
			passed("308", "308 | A: 1 | B: b"),
			{request: "GET /?q=2", next: same, fails: 502, response: "502 | B: b"},
		}},
	{name: "add_header of single fields", settings: `{"add_headers": [
		{"name": "Last-Modified", "value": ""}, {"name": "etag", "value": "x"}]}`, requests: []requestCase{
		passed("200 | Last-Modified: a | ETag: b | ETag: c", "200 | etag: x"),
	}},
	{name: "control characters", settings: `{"add_headers": [{"name": "A", "value": "a$uri"}],
		"more_headers": [{"set": [{"name": "B", "value": "b$uri"}]}]}`, requests: []requestCase{
		{request: "GET /%0d%0aC:c", next: same, backend: "200 | B: 0", response: "200"},
		{request: "GET /%7F", next: same, response: "200"},
		{request: "GET /c%20", next: same, response: "200 | B: b/c | A: a/c"},
		{request: "GET /%09c", next: same, response: "200 | B: b/\tc | A: a/\tc"},
	}},
	{name: "more_set_headers", settings: `{"more_headers": [
		{"set": [{"name": "A", "value": "x"}, {"name": "B", "value": ""}]},
		{"set": [{"name": "C", "value": "$sent_http_a,$sent_http_content_length,$sent_http_b"}]}]}`,
		requests: []requestCase{
			passed("200 | A: 1 | a: 2 | B: 3", "200 | A: x | C: x,0,"), passed("500", "500 | A: x | C: x,0,"),
			{request: "GET /", next: same, fails: 503, response: "503 | A: x | C: x,0,"},
		}},
	{name: "more_set_headers with conditions", settings: `{"more_headers": [
		{"set": [{"name": "A", "value": "a"}], "statuses": [404, 500]},
		{"set": [{"name": "B", "value": "b"}], "types": ["text/html", "text/plain"]},
		{"set": [{"name": "C", "value": "c"}], "statuses": []}]}`, requests: []requestCase{
		passed("404 | Content-Type: TEXT/html ; a=b", "404 | Content-Type: TEXT/html ; a=b | A: a | B: b"),
		passed("200 | Content-Type: text/htmlx", "200 | Content-Type: text/htmlx"),
	}},
	{name: "more_clear_headers", settings: `{"more_headers": [{"clear": ["A", "X-hidden-*"]}]}`,
		requests: []requestCase{passed("200 | a: 1 | B: 2 | x-Hidden-C: 3 | X-Hidden: 4", "200 | B: 2 | X-Hidden: 4")}},
	{name: "more_clear_headers of all", settings: `{"more_headers": [{"clear": ["*"]}]}`, requests: []requestCase{
		passed("200 | a: 1 | Server: 2", "200"),
	}},
	{name: "more before add", settings: `{"add_headers": [{"name": "A", "value": "a$sent_http_b"}],
		"expires": {"mode": "epoch"},
		"more_headers": [{"set": [{"name": "A", "value": "b"}, {"name": "B", "value": "$sent_http_a"}]},
		{"clear": ["A", "Expires"]}]}`,
		requests: []requestCase{passed("200", "200 | B: b | Expires: Thu, 01 Jan 1970 00:00:01 GMT | "+
			"Cache-Control: no-cache | A: ab")}},
	{name: "expires", settings: `{"expires": {"seconds": 3600}}`, requests: []requestCase{
		passed("200 | Cache-Control: a | Expires: b | cache-control: c",
			"200 | Cache-Control: max-age=3600 | Expires: Sat, 01 Jan 2000 01:00:00 GMT"),
		passed("404", "404"),
	}},
	{name: "expires now", settings: `{"expires": {}}`, requests: []requestCase{
		passed("200", "200 | Expires: "+clock+" | Cache-Control: max-age=0"),
	}},
	{name: "expires in the past", settings: `{"expires": {"seconds": -1}}`, requests: []requestCase{
		passed("200", "200 | Expires: Fri, 31 Dec 1999 23:59:59 GMT | Cache-Control: no-cache"),
	}},
	{name: "expires epoch", settings: `{"expires": {"mode": "epoch"}}`, requests: []requestCase{
		passed("200", "200 | Expires: Thu, 01 Jan 1970 00:00:01 GMT | Cache-Control: no-cache"),
	}},
	{name: "expires max", settings: `{"expires": {"mode": "max"}}`, requests: []requestCase{
		passed("200", "200 | Expires: Thu, 31 Dec 2037 23:55:55 GMT | Cache-Control: max-age=315360000"),
	}},
	{name: "expires off", settings: `{"expires": {"mode": "off"}}`, requests: []requestCase{passed("200", "200")}},
	{name: "expires modified", settings: `{"expires": {"seconds": 86400, "modified": true}}`, requests: []requestCase{
		passed("200 | Last-Modified: Fri, 31 Dec 1999 12:00:00 GMT",
			"200 | Last-Modified: Fri, 31 Dec 1999 12:00:00 GMT | Expires: Sat, 01 Jan 2000 12:00:00 GMT"+
				" | Cache-Control: max-age=43200"),
		passed("200 | Last-Modified: Wed, 29 Dec 1999 00:00:00 GMT",
			"200 | Last-Modified: Wed, 29 Dec 1999 00:00:00 GMT | Expires: Thu, 30 Dec 1999 00:00:00 GMT"+
				" | Cache-Control: no-cache"),
		passed("200", "200 | Expires: Sun, 02 Jan 2000 00:00:00 GMT | Cache-Control: max-age=86400"),
	}},
	{name: "expires modified now", settings: `{"expires": {"modified": true}}`, requests: []requestCase{
		passed("200 | Last-Modified: Fri, 31 Dec 1999 12:00:00 GMT",
			"200 | Last-Modified: Fri, 31 Dec 1999 12:00:00 GMT | Expires: "+clock+" | Cache-Control: max-age=0"),
	}},
	{name: "expires with a variable", settings: `{"expires": {"template": "$sent_http_a"}}`, requests: []requestCase{
		passed("200 | A: +1h", "200 | A: +1h | Expires: Sat, 01 Jan 2000 01:00:00 GMT | Cache-Control: max-age=3600"),
		passed("200 | A: epoch", "200 | A: epoch | Expires: Thu, 01 Jan 1970 00:00:01 GMT | Cache-Control: no-cache"),
		passed("200 | A: off | Expires: b", "200 | A: off | Expires: b"),
		passed("200 | A: never | Expires: b", "200 | A: never | Expires: b"),
		passed("200 | Expires: b", "200 | Expires: b"),
		passed("404 | A: +1h", "404 | A: +1h"),
	}},
	{name: "expires modified with a variable", settings: `{"expires": {"template": "$sent_http_a", "modified": true}}`,
		requests: []requestCase{
			passed("200 | A: 1d | Last-Modified: Fri, 31 Dec 1999 12:00:00 GMT",
				"200 | A: 1d | Last-Modified: Fri, 31 Dec 1999 12:00:00 GMT | Expires: Sat, 01 Jan 2000 12:00:00 GMT"+
					" | Cache-Control: max-age=43200"),
			passed("200 | A: max", "200 | A: max"),
		}},
	{name: "more_set_input_headers", settings: `{"input_headers": [
		{"set": [{"name": "A", "value": "$http_a-$request_method"}, {"name": "B", "value": ""}]},
		{"set": [{"name": "C", "value": "c"}, {"name": "D", "value": "d"}], "if_present": true},
		{"clear": ["E", "F-*"]}]}`, requests: []requestCase{
		{request: "GET http://shop.example/ | A: 1 | B: 2 | C: 3 | e: 4 | f-1: 5 | F: 6",
			next: "GET http://shop.example/ | A: 1-GET | C: c | F: 6", response: "200"},
	}},
	{name: "loops are still detected", settings: `{"input_headers": [{"clear": ["c*"]}]}`, requests: []requestCase{
		{request: "GET / | CDN-Loop: k8singress | Cookie: a=b | Connection: close",
			next: "GET / | CDN-Loop: k8singress | Connection: close", response: "200"},
	}},
	{name: "input headers after the steps", settings: `{"input_headers": [{"set": [{"name": "A", "value": "$a"}]}],
		"steps": [{"set": {"name": "a", "value": "<$http_a>"}}]}`, requests: []requestCase{
		{request: "GET / | A: 1", next: "GET / | A: <1>", response: "200"},
	}},
}

// TestProgramWithExternalAuth checks that a program can send header fields of the authentication service's response to
// the endpoint, also of a response from the cache, and that clients cannot set its variables.
func TestProgramWithExternalAuth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnvironment(t)
		program := env.newFilter(t, "k8singress_program", `{
			"endpoint_headers": [{"name": "X-User", "value": "$user"}],
			"add_headers": [{"name": "X-Session", "value": "$session$code", "always": true}],
			"auth_variables": [{"name": "user", "value": "$upstream_http_x_auth_user"},
				{"name": "session", "value": "$upstream_cookie_session"},
				{"name": "code", "value": "$upstream_status"}]}`)
		auth := env.newFilter(t, "k8singress_external_auth", `{"url": "http://auth.example",
			"kept_headers": ["x-auth-user"], "cache_key": "$http_a",
			"cache_for": [{"statuses": [202], "for": 60000000000}]}`)
		for _, c := range []struct {
			service, endpoint, response string
			calls                       int
		}{
			{"202 | X-Auth-User: alice | X-Other: a", "X-User: alice", "200 | X-Session: 202", 1},
			{"403", "X-User: alice", "200 | X-Session: 202", 0},
		} {
			env.answer, env.calls = c.service, nil
			x, response := exchangetest.New(t, "GET http://shop.example/?user=bob | X-Auth-User: bob | A: 1")
			for _, f := range []filter.Filter{program, auth} {
				if responded, err := f.Apply(x); responded || err != nil {
					t.Fatalf("the filter responds: %t, %v", responded, err)
				}
			}
			fields := message.Fields{}
			x.AddForEndpoint(&fields)
			if err := x.Respond(200, ""); err != nil || response.String() != c.response {
				t.Errorf("the client gets %q, %v", response, err)
			}
			if got := exchangetest.Text(fields); got != c.endpoint || len(env.calls) != c.calls {
				t.Errorf("the endpoint gets %q after %d calls", got, len(env.calls))
			}
		}
		env.answer = "401 | Set-Cookie: session=1; Path=/"
		x, _ := exchangetest.New(t, "GET http://shop.example/ | A: 2")
		if _, err := program.Apply(x); err != nil {
			t.Fatal(err)
		}
		if _, err := auth.Apply(x); exchange.StatusOf(err) != 401 {
			t.Errorf("the request fails with %v", err)
		}
		if got := exchangetest.Text(x.Refusal(401).Fields); got != "X-Session: 1401" {
			t.Errorf("a client that is refused gets %q", got)
		}
	})
}

// TestRewriteEnded checks that no filter redirects or rewrites a request after break.
func TestRewriteEnded(t *testing.T) {
	env := newEnvironment(t)
	for name, settings := range map[string]string{
		"k8singress_rewrite":          `{"target": "/b"}`,
		"k8singress_redirect":         `{"url": "http://other.example", "status_code": 301}`,
		"k8singress_rewrite_redirect": `{"target": "http://other.example/"}`,
	} {
		x, _ := exchangetest.New(t, "GET http://shop.example/a")
		for _, f := range []filter.Filter{
			env.newFilter(t, "k8singress_program", steps(`{"break": true}`)), env.newFilter(t, name, settings),
		} {
			if responded, err := f.Apply(x); responded || err != nil || x.Path != "/a" {
				t.Errorf("%s: %t, %v with the path %s", name, responded, err, x.Path)
			}
		}
	}
}

// TestTwoPrograms checks what the second program of a chain replaces of the first one, and that break ends the steps of
// both.
func TestTwoPrograms(t *testing.T) {
	env := newEnvironment(t)
	const outer = `{"steps": [{"break": true}], "add_headers": [{"name": "A", "value": "1"}], "unlogged": true,
		"more_headers": [{"set": [{"name": "B", "value": "b"}]}], "expires": {"mode": "epoch"}}`
	const epoch = " | Expires: Thu, 01 Jan 1970 00:00:01 GMT | Cache-Control: no-cache"
	for inner, want := range map[string]string{
		`{"steps": [{"return": {"status": 403}}]}`:              "200 | B: b" + epoch + " | A: 1",
		`{"add_headers": [{"name": "C", "value": "2"}]}`:        "200 | B: b" + epoch + " | C: 2",
		`{"add_headers": [], "expires": {"mode": "off"}}`:       "200 | B: b",
		`{"more_headers": [{"clear": ["*"]}]}`:                  "200" + epoch + " | A: 1",
		steps(`{"if": {"variable": "host", "directives": {}}}`): "200 | B: b" + epoch + " | A: 1",
	} {
		x, response := exchangetest.New(t, "GET http://shop.example/a")
		for _, settings := range []string{outer, inner} {
			if responded, err := env.newFilter(t, "k8singress_program", settings).Apply(x); responded || err != nil {
				t.Fatal(responded, err)
			}
		}
		if err := x.Respond(200, ""); err != nil || response.String() != want || !x.Unlogged {
			t.Errorf("%s: the client gets %q, %v, want %q; unlogged: %t", inner, response, err, want, x.Unlogged)
		}
	}
}

// TestDefaultType checks which Content-Type a text of the last program of a chain has.
func TestDefaultType(t *testing.T) {
	env := newEnvironment(t)
	const outer, inner = `{"default_type": "text/outer"}`, `"default_type": "text/inner"`
	text := `{"steps": [` + answers("a") + `]`
	for _, c := range []struct {
		programs []string
		want     string
	}{
		{[]string{text + "}"}, "text/global"},
		{[]string{outer, text + "}"}, "text/outer"},
		{[]string{outer, text + ", " + inner + "}"}, "text/inner"},
		{[]string{outer, "{" + inner + "}", text + "}"}, "text/inner"},
	} {
		x, response := exchangetest.New(t, "GET http://shop.example/a")
		x.Global = &ir.Global{DefaultType: "text/global"}
		for i, settings := range c.programs {
			responded, err := env.newFilter(t, "k8singress_program", settings).Apply(x)
			if last := i == len(c.programs)-1; responded != last || err != nil {
				t.Fatal(responded, err)
			}
		}
		if got, want := response.String(), "200 | Content-Type: "+c.want; got != want {
			t.Errorf("%q: the client gets %q, want %q", c.programs, got, want)
		}
	}
}

// TestProgramKeepsTheClient checks that changes of request headers do not change the address of the client.
func TestProgramKeepsTheClient(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example/")
	x.Clients = realip.New(ir.Clients{UseForwarded: true, Trusted: []string{exchangetest.Client + "/32"}})
	f := newEnvironment(t).newFilter(t, "k8singress_program",
		`{"input_headers": [{"set": [{"name": "X-Forwarded-For", "value": "203.0.113.9"}]}]}`)
	if _, err := f.Apply(x); err != nil {
		t.Fatal(err)
	}
	if ip := x.Client().IP; ip != exchangetest.Client {
		t.Errorf("the client is %s", ip)
	}
}
