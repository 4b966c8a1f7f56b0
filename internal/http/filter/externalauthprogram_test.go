package filter_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

var authProgramCases = []filterCase{
	{
		name: "a program that responds", settings: `{"url": "http://auth.example", "response_headers": ["X-User"],
			"program": {"steps": [
				{"if": {"variable": "request_method", "operator": "=", "value": "OPTIONS", "steps": [
					{"return": {"status": 204, "text": "ignored", "has_text": true}}]}},
				{"if": {"variable": "http_x_status", "operator": "~", "value": "^4", "steps": [
					{"if": {"variable": "http_x_status", "operator": "=", "value": "401", "steps": [
						{"return": {"status": 401}}]}},
					{"if": {"variable": "http_x_status", "operator": "=", "value": "403", "steps": [
						{"return": {"status": 403}}]}},
					{"return": {"status": 404}}]}}]}}`,
		requests: []requestCase{
			{
				request:  "OPTIONS http://shop.example/ | X-User: mallory | X_USER: mallory",
				next:     "OPTIONS http://shop.example/",
				response: "200",
			},
			{
				request: "GET http://shop.example/ | X-User: mallory", service: "200 | X-User: alice", asked: asked,
				next: "GET http://shop.example/ | X-User: alice", response: "200",
			},
			gets("GET http://shop.example/ | X-Status: 401", "401"),
			gets("GET http://shop.example/ | X-Status: 403", "403"),
			gets("GET http://shop.example/ | X-Status: 404", "500"),
		},
	},
	{
		name: "a program with a sign-in page", settings: `{"url": "http://auth.example", "sign_in": "/login",
			"program": {"steps": [{"return": {"status": 401}}]}}`,
		requests: []requestCase{gets("GET http://shop.example/", "302 | Location: /login")},
	},
	{
		name: "redirects do not let clients in", settings: `{"url": "http://auth.example", "program": {"steps": [
			{"return": {"status": 302, "text": "https://a.example", "has_text": true}}]}}`,
		requests: []requestCase{gets("GET http://shop.example/", "500")},
	},
	{
		name: "the backend gets the header fields of the client", settings: `{"url": "http://auth.example",
			"program": {"input_headers": [{"clear": ["Cookie"], "set": [{"name": "X-A", "value": "b"}]}],
				"endpoint_headers": [{"name": "Accept", "value": ""}]}}`,
		requests: []requestCase{
			{
				request: "GET http://shop.example/ | Cookie: a=b | X-A: a | Accept: text/html", service: "200",
				asked: asked, next: same, response: "200",
			},
		},
	},
	{
		name: "the response of a program is not cached", settings: `{"url": "http://auth.example",
			"cache_key": "one", "cache_for": [{"statuses": [200, 403], "for": 60000000000}], "program": {"steps": [
				{"if": {"variable": "http_x_in", "steps": [{"return": {"status": 200}}]}},
				{"if": {"variable": "http_x_out", "steps": [{"return": {"status": 403}}]}}]}}`,
		requests: []requestCase{
			passes("GET http://shop.example/ | X-In: 1"),
			gets("GET http://shop.example/ | X-Out: 1", "403"),
			refusedBy("403", "403"),
			gets("GET http://shop.example/", "403"),
			passes("GET http://shop.example/ | X-In: 1"),
		},
	},
	{
		name: "cached responses are for the same header fields", settings: `{"url": "http://auth.example",
			"cache_key": "one", "cache_for": [{"statuses": [200, 403], "for": 60000000000}], "program": {
				"steps": [{"if": {"variable": "http_x_tenant", "operator": "~", "value": "^(\\w+)-",
					"steps": [{"set": {"name": "tenant", "value": "$1"}}]}}],
				"endpoint_headers": [{"name": "X-Tenant", "value": "$tenant"}]}}`,
		requests: []requestCase{
			{
				request: "GET http://shop.example/ | X-Tenant: a-1", service: "200", asked: asked, next: same,
				response: "200",
			},
			{request: "GET http://shop.example/ | X-Tenant: b-1", service: "403", asked: asked, response: "403"},
			refusedBy("403", "403"),
			passes("GET http://shop.example/ | X-Tenant: a-2"),
			gets("GET http://shop.example/ | X-Tenant: b-2", "403"),
		},
	},
	{
		name: "changed header fields of clients are not cached", settings: `{"url": "http://auth.example",
			"cache_key": "one", "cache_for": [{"statuses": [200, 403], "for": 60000000000}], "program": {"steps": [
				{"if": {"variable": "cookie_a", "directives": {"input_headers": [
					{"set": [{"name": "X-User", "value": "$cookie_a"}]}]}}}]}}`,
		requests: []requestCase{
			{
				request: "GET http://shop.example/ | Cookie: a=b", service: "200", asked: asked, next: same,
				response: "200",
			},
			refusedBy("403", "403"),
			gets("GET http://shop.example/", "403"),
			{
				request: "GET http://shop.example/ | Cookie: a=c", service: "200", asked: asked, next: same,
				response: "200",
			},
		},
	},
	{
		// The service would decide about /public/..%2fadmin as about /public.
		name: "ambiguous paths", settings: `{"url": "http://auth.example", "program": {"steps": [
			{"if": {"variable": "request_uri", "operator": "~", "value": "^/public/", "steps": [
				{"return": {"status": 200}}]}}]}}`,
		requests: []requestCase{
			passes("GET http://shop.example/public/a"),
			gets("GET http://shop.example/public/..%2fadmin", "400"),
		},
	},
	{
		name: "ambiguous paths in header fields", settings: `{"url": "http://auth.example", "program": {"steps": [
			{"if": {"variable": "request_uri", "operator": "~", "value": "^/public/", "steps": [
				{"set": {"name": "level", "value": "public"}}]}}],
			"endpoint_headers": [{"name": "X-Level", "value": "$level"}]}}`,
		requests: []requestCase{
			{request: "GET http://shop.example/public/a", service: "200", asked: asked, next: same, response: "200"},
			gets("GET http://shop.example/public/..%2fadmin", "400"),
		},
	},
	rejected("a program that rewrites", `{"url": "http://a", "program": {"steps": [
		{"if": {"variable": "host", "steps": [{"rewrite": {"pattern": "^", "target": "/"}}]}}]}}`, "changes the path"),
	rejected("a program that breaks", `{"url": "http://a", "program": {"steps": [{"break": true}]}}`, "ends its steps"),
	rejected("a program that sets the query", `{"url": "http://a", "program": {"steps": [
		{"set": {"name": "args", "value": "a"}}]}}`, "changes the path or the query"),
	rejected("a program with a group that sets the query", `{"url": "http://a", "program": {"steps": [
		{"if": {"variable": "host", "operator": "~", "value": "(?<args>.)"}}]}}`, "changes the path or the query"),
	rejected("a program with a field of the connection", `{"url": "http://a", "program": {"endpoint_headers": [
		{"name": "Host", "value": "a"}]}}`, `the header "Host" cannot be set`),
	rejected("a program with an invalid step", `{"url": "http://a", "program": {"steps": [{}]}}`, "empty"),
}

// TestAuthProgramScope checks that a program for authentication requests neither sees nor changes the capture groups of
// the client's request, and that it shares its variables with this request, as in nginx.
func TestAuthProgramScope(t *testing.T) {
	env := newEnvironment(t)
	env.answer = "200"
	x, _ := exchangetest.New(t, "GET http://shop.example/ | X-Request-ID: a | X-Key: key-1")
	x.SetGroups("outer", []int{0, 5, 0, 5}, nil)
	f := env.newFilter(t, "k8singress_external_auth", `{"url": "http://auth.example", "program": {
		"steps": [{"set": {"name": "before", "value": "<$1>"}},
			{"if": {"variable": "http_x_key", "operator": "~", "value": "-(?<number>.)$"}}],
		"input_headers": [{"set": [{"name": "X-Request-ID", "value": "b"}, {"name": "X-Real-IP", "value": "b"}]}],
		"endpoint_headers": [{"name": "X-Groups", "value": "$before$1$number"}]}}`)
	if responded, err := f.Apply(x); responded || err != nil {
		t.Fatal(responded, err)
	}
	if got, _ := env.calls[0].Fields.Joined("X-Groups"); got != "<>11" {
		t.Errorf("the service gets X-Groups: %s", got)
	}
	if got := x.Variable("1") + x.Variable("number") + x.ID() + x.ClientIP() + exchangetest.Head(x); got !=
		"outer1a"+exchangetest.Client+"GET http://shop.example/ | X-Request-ID: a | X-Key: key-1" {
		t.Errorf("after the program, the request is %s", got)
	}
}

// TestAuthProgramAfterBreak checks that the program of an authentication service also runs on requests whose rewriting
// an earlier program has ended with break.
func TestAuthProgramAfterBreak(t *testing.T) {
	env := newEnvironment(t)
	x, _ := exchangetest.New(t, "GET http://shop.example/")
	x.RewriteEnded = true
	f := env.newFilter(t, "k8singress_external_auth",
		`{"url": "http://auth.example", "program": {"steps": [{"return": {"status": 403}}]}}`)
	if responded, err := f.Apply(x); responded || exchange.StatusOf(err) != 403 {
		t.Error(responded, err)
	}
}
