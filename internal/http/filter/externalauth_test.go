package filter_test

import (
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

var externalAuthCases = []filterCase{
	{
		name: "fields for the backend",
		settings: `{"url": "https://auth.example/check?u=$escaped_request_uri",
			"response_headers": ["X-User", "x-groups", "Authorization"]}`,
		requests: []requestCase{
			{
				request: "POST http://shop.example/some?x=1 | X-User: mallory | x_user: mallory | X-GROUPS: admins" +
					" | X-Users: kept | Authorization: Basic x",
				body: "body", service: "200 | X-User: alice | X-Other: no | Set-Cookie: a=1 | Set-Cookie: b=2",
				asked:    "GET https://auth.example:443/check?u=%2Fsome%3Fx%3D1",
				next:     "POST http://shop.example/some?x=1 | X-Users: kept | X-User: alice",
				response: "200 | Set-Cookie: a=1 | Set-Cookie: b=2",
			},
			{
				request: "GET http://shop.example/ | Authorization: Basic x",
				service: "204 | X-Groups: a | X-Groups: b | Authorization: Bearer y | X-User:",
				asked:   "GET https://auth.example:443/check?u=%2F",
				next:    "GET http://shop.example/ | x-groups: a, b | Authorization: Bearer y", response: "200",
			},
		},
	},
	{name: "refusals", settings: `{"url": "http://auth.example"}`, requests: []requestCase{
		refusedBy("401 | WWW-Authenticate: Bearer | WWW-Authenticate: Basic | Location: /login | Set-Cookie: c=1",
			"401 | WWW-Authenticate: Bearer | WWW-Authenticate: Basic"),
		refusedBy("403 | WWW-Authenticate: Bearer | Set-Cookie: c=1", "403"),
		refusedBy("302 | Location: /login", "500"), refusedBy("404", "500"), refusedBy("500", "500"),
		refusedBy("304", "500"), refusedBy("101", "500"), refusedBy(down, "500"),
		// The service has not failed, so clients may retry.
		refusedBy(busy, "503"),
		{request: "GET http://shop.example/ | X-User: bob", service: "200", asked: asked, next: same, response: "200"},
		{
			request: "GET http://shop.example/", service: "200 | Set-Cookie: c=1", asked: asked, next: same,
			backend: "404", response: "404",
		},
	}},
	{
		name: "a sign-in page", settings: `{"url": "http://auth.example",
			"sign_in": "https://$host/login?x=$arg_a&rd=$pass_access_scheme://$http_host$escaped_request_uri"}`,
		requests: []requestCase{
			{
				request: "GET https://shop.example/a%20b?a=1%0d&b",
				service: "401 | WWW-Authenticate: Bearer | Set-Cookie: c=1", asked: asked,
				response: "302 | Location: https://shop.example/login?x=1%0d" +
					"&rd=https://shop.example%2Fa%2520b%3Fa%3D1%250d%26b | Set-Cookie: c=1",
			},
			refusedBy("403", "403"), refusedBy("503", "500"),
		},
	},
	{
		name: "all responses", settings: `{"url": "http://auth.example", "always_set_cookie": true}`,
		requests: []requestCase{
			refusedBy("401 | Set-Cookie: c=1", "401 | Set-Cookie: c=1"),
			refusedBy("403 | Set-Cookie: c=1", "403 | Set-Cookie: c=1"),
			refusedBy("500 | Set-Cookie: c=1", "500"),
			{
				request: "GET http://shop.example/", service: "200 | Set-Cookie: c=1", asked: asked, next: same,
				backend: "404", response: "404 | Set-Cookie: c=1",
			},
			{
				request: "GET http://shop.example/", service: "200 | Set-Cookie: c=1", asked: asked, next: same,
				fails: 502, response: "502 | Set-Cookie: c=1",
			},
		},
	},
	{
		name: "the host of the client", settings: `{"url": "http://$host/check"}`,
		route: at("*.shop.example", "prefix", "/"),
		requests: []requestCase{
			{
				request: "GET http://a.shop.example:8080/", service: "200", asked: "GET http://a.shop.example:80/check",
				next: same, response: "200",
			},
			// The client has chosen these hosts.
			gets("GET http://evil.example/", "503"),
			gets("GET http://.shop.example/", "503"),
			gets("GET /", "503"),
		},
	},
	{
		// The host of the URL is the host of the Ingress, and not the alias that the client has chosen.
		name: "an alias", settings: `{"url": "http://$host/check"}`, route: at("shop.example", "prefix", "/"),
		requests: []requestCase{{
			request: "GET http://evil.example/", service: "200", asked: "GET http://shop.example:80/check", next: same,
			response: "200",
		}},
	},
	{
		name: "the host of any client", settings: `{"url": "http://$http_host/"}`, route: at("", "prefix", "/"),
		requests: []requestCase{gets("GET http://evil.example/", "503")},
	},
	// The request has no backend, so the host of the URL is empty.
	{name: "no host", settings: `{"url": "http://$service_name/"}`, requests: []requestCase{
		gets("GET http://shop.example/", "500"),
	}},
	{
		name: "any host", settings: `{"url": "http://auth.example/"}`, route: at("", "prefix", "/"),
		requests: []requestCase{
			{request: "GET http://evil.example/", service: "200", asked: asked, next: same, response: "200"},
		},
	},
	{
		name: "cached", settings: `{"url": "http://auth.example", "response_headers": ["X-User"],
			"cache_key": "$http_x_key", "cache_for": [{"statuses": [200, 401], "for": 60000000000}]}`,
		requests: []requestCase{
			keyed("a", "200 | X-User: alice", asked, "alice"), keyed("a", down, "", "alice"),
			keyed("b", "200", asked, ""),
			{
				request: "GET http://shop.example/ | X-Key: c", service: "401 | WWW-Authenticate: Bearer", asked: asked,
				response: "401 | WWW-Authenticate: Bearer",
			},
			gets("GET http://shop.example/ | X-Key: c", "401 | WWW-Authenticate: Bearer"),
			{request: "GET http://shop.example/ | X-Key: d", service: "403", asked: asked, response: "403"},
			{request: "GET http://shop.example/ | X-Key: d", service: down, asked: asked, response: "500"},
			keyed("d", "200 | X-User: dan | Vary: Cookie", asked, "dan"),
			{
				request: "GET http://shop.example/ | X-Key: d | Cookie: e=f", service: "403", asked: asked,
				response: "403",
			},
			{
				after: time.Minute, request: "GET http://shop.example/ | X-Key: a", service: "401", asked: asked,
				response: "401",
			},
		},
	},
	rejected("not a URL", `{"url": "auth"}`, "the value is not a URL"),
	rejected("a field of the connection", `{"url": "http://a", "response_headers": ["Connection"]}`,
		`the response header "Connection" cannot be sent to the backend`),
	rejected("a confusing field", `{"url": "http://a", "response_headers": ["X_Real_IP"]}`, `"X_Real_IP"`),
	rejected("another field of the connection", `{"url": "http://a", "set_headers": [{"name": "Upgrade"}]}`,
		`the header "Upgrade" cannot be set`),
	rejected("not a name", `{"url": "http://a", "set_headers": [{"name": "a b"}]}`, `the header "a b"`),
	rejected("a variable of the response", `{"url": "http://a", "set_headers": [{"name": "a", "value": "$status"}]}`,
		"no variable $status"),
	rejected("a variable of the response in the redirect", `{"url": "http://a", "request_redirect": "$status"}`,
		"no variable $status"),
	rejected("a variable of the response in the key", `{"url": "http://a", "cache_key": "$status"}`,
		"no variable $status"),
	rejected("no page", `{"url": "http://a", "sign_in": "login"}`, "is neither a URL"),
}

// refusedBy returns a request with the response of the service and the response to the client.
func refusedBy(service, response string) requestCase {
	return requestCase{request: "GET http://shop.example/", service: service, asked: asked, response: response}
}

// keyed returns a request with a cache key. The backend gets the field X-User, unless user is empty.
func keyed(key, service, asked, user string) requestCase {
	r := requestCase{
		request: "GET http://shop.example/ | X-Key: " + key, service: service, asked: asked, response: "200",
	}
	r.next = r.request
	if user != "" {
		r.next += " | X-User: " + user
	}
	r.request += " | X-User: mallory"
	return r
}

// TestExternalAuthRequest checks the header fields and the host of the request that the service gets.
func TestExternalAuthRequest(t *testing.T) {
	const from = "X-Real-IP: 192.0.2.1 | X-Forwarded-For: 192.0.2.1"
	for name, c := range map[string]struct{ settings, request, line, host, fields string }{
		"usual": {
			settings: `{"url": "http://auth.example:81/"}`,
			request: "POST https://shop.example/some?x=1 | X-Request-ID: me | Authorization: Bearer token" +
				" | X-Sent-From: me | x_sent_from: me | X-Original-URL: http://no | X-Real-IP: 192.0.2.9" +
				" | X-Forwarded-Proto: ftp" +
				" | Connection: close | Upgrade: websocket | Expect: 100-continue | ssl-client-verify: SUCCESS" +
				" | X-User: bob",
			line: "GET http://auth.example:81/", host: "auth.example",
			fields: "Authorization: Bearer token | X-User: bob | X-Request-ID: me" +
				" | X-Original-URL: https://shop.example/some?x=1 | X-Original-Method: POST | " + from +
				" | CDN-Loop: k8singress | X-Sent-From: nginx-ingress-controller | X-Auth-Request-Redirect: /some?x=1",
		},
		"a method": {
			settings: `{"url": "http://auth.example", "method": "POST"}`,
			request:  "GET http://shop.example/x | X-Request-ID: me | CDN-Loop: a",
			line:     "POST http://auth.example:80/", host: "auth.example",
			fields: "X-Request-ID: me | X-Original-URL: http://shop.example/x | X-Original-Method: GET | " + from +
				" | CDN-Loop: a, k8singress | X-Original-URI: /x | X-Scheme: http" +
				" | X-Sent-From: nginx-ingress-controller | X-Auth-Request-Redirect: /x",
		},
		"fields of the Ingress": {
			settings: `{"url": "http://$host/", "request_redirect": "https://$host$uri", "set_headers": [
				{"name": "X-App", "value": "shop $host {env.HOME}"}, {"name": "CDN-Loop", "value": "none"},
				{"name": "X-Real-IP", "value": "$http_x_none"}, {"name": "X-Original-Method", "value": "any"}]}`,
			request: "GET http://shop.example/a%0d | X-Request-ID: me | x_app: client | X-App: client",
			line:    "GET http://shop.example:80/", host: "shop.example",
			fields: "X-Request-ID: me | X-Original-URL: http://shop.example/a%0d | X-Forwarded-For: 192.0.2.1" +
				" | CDN-Loop: k8singress | X-Sent-From: nginx-ingress-controller" +
				" | X-Auth-Request-Redirect: https://shop.example/a%0D | X-App: shop shop.example {env.HOME}" +
				" | X-Original-Method: any",
		},
		"fields of a program": {
			settings: `{"url": "http://auth.example", "set_headers": [{"name": "X-App", "value": "a"},
				{"name": "X-Kept", "value": "a"}], "program": {
				"input_headers": [{"set": [{"name": "X-Input", "value": "$http_x_real_ip"}], "clear": ["Cookie"]}],
				"endpoint_headers": [{"name": "X-Forwarded-Host", "value": "$http_host"},
					{"name": "X-Forwarded-Method", "value": "$request_method"}, {"name": "x-app", "value": "b"},
					{"name": "X-Real-IP", "value": "$remote_addr!"}, {"name": "X-Sent-From", "value": ""},
					{"name": "X-Auth-Request-Redirect", "value": "/"}, {"name": "Accept", "value": ""}]}}`,
			request: "PUT http://shop.example/ | X-Request-ID: me | X-Forwarded-Host: client | Cookie: a=b" +
				" | X-Forwarded-Method: client | Accept: client | X-Input: client | X-Real-IP: client",
			line: "GET http://auth.example:80/", host: "auth.example",
			fields: "X-Input: client | X-Request-ID: me | X-Original-URL: http://shop.example/" +
				" | X-Original-Method: PUT | X-Forwarded-For: 192.0.2.1 | CDN-Loop: k8singress | X-Kept: a" +
				" | X-Forwarded-Host: shop.example | X-Forwarded-Method: PUT | x-app: b" +
				" | X-Real-IP: 192.0.2.1! | X-Auth-Request-Redirect: /",
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment(t)
			env.answer = "200"
			x, _ := exchangetest.New(t, c.request)
			f := env.newFilter(t, "k8singress_external_auth", c.settings)
			if responded, err := f.Apply(x); responded || err != nil {
				t.Fatal(responded, err)
			}
			call := env.calls[0]
			if fields := exchangetest.Text(call.Fields); fields != c.fields {
				t.Errorf("the service gets the fields\n%s, want\n%s", fields, c.fields)
			}
			if lineOf(call) != c.line || call.Host != c.host || call.Namespace != "shop" ||
				call.Own != (c.host == x.Host) || len(call.Body) > 0 {
				t.Errorf("the service gets %s, host %s, own %t, namespace %s, body %q", lineOf(call), call.Host,
					call.Own, call.Namespace, call.Body)
			}
		})
	}
}

// TestExternalAuthCacheKey checks that a cached response is only used for requests with the same Ingress, host and path
// of the route, and for filters with the same settings.
func TestExternalAuthCacheKey(t *testing.T) {
	const settings = `{"url": "http://auth.example", "cache_key": "one",
		"cache_for": [{"statuses": [200], "for": 60000000000}]`
	const root = "GET http://shop.example/"
	for name, c := range map[string]struct {
		more, request string
		change        func(r *exchange.Route)
		calls         int
	}{
		"the same":          {"", "GET http://shop.example/other", nil, 1},
		"another port":      {"", "GET http://SHOP.example:8080/", nil, 1},
		"another host":      {"", "GET http://alias.example/", nil, 2},
		"another Ingress":   {"", root, func(r *exchange.Route) { r.Origin = "Ingress/shop/b" }, 2},
		"another namespace": {"", root, func(r *exchange.Route) { r.Origin = "Ingress/b/web" }, 2},
		"another path":      {"", root, func(r *exchange.Route) { r.Path = "/b" }, 2},
		"another type":      {"", root, func(r *exchange.Route) { r.Type = "exact" }, 2},
		"a wildcard":        {"", root, func(r *exchange.Route) { r.Host = "*.example" }, 2},
		"another setting":   {`, "method": "POST"`, root, nil, 2},
		"another boundary":  {"", root, func(r *exchange.Route) { r.Path, r.Type = "", "prefix/" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment(t)
			env.answer = "200"
			send := func(settings, request string, change func(r *exchange.Route)) {
				x, _ := exchangetest.New(t, request)
				x.Route = at("shop.example", "prefix", "/")
				if change != nil {
					change(x.Route)
				}
				f := env.newFilter(t, "k8singress_external_auth", settings)
				if responded, err := f.Apply(x); responded || err != nil {
					t.Error(responded, err)
				}
			}
			send(settings+"}", root, nil)
			send(settings+c.more+"}", c.request, c.change)
			if len(env.calls) != c.calls {
				t.Errorf("the service is asked %d times, want %d", len(env.calls), c.calls)
			}
		})
	}
}

// TestExternalAuthTrailers checks that a client cannot forge a header field of the service with a trailer field.
func TestExternalAuthTrailers(t *testing.T) {
	env := newEnvironment(t)
	env.answer = "200"
	x, _ := exchangetest.New(t, "POST http://shop.example/")
	x.Trailers = func() message.Fields { return exchangetest.Fields("X-User: mallory | x_user: mallory | X-Sum: 1") }
	f := env.newFilter(t, "k8singress_external_auth", `{"url": "http://auth.example", "response_headers": ["X-User"]}`)
	if responded, err := f.Apply(x); responded || err != nil {
		t.Fatal(responded, err)
	}
	if got := exchangetest.Text(x.Trailers()); got != "X-Sum: 1" {
		t.Errorf("the backend gets the trailers %s", got)
	}
}
