package filter_test

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/mirror"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var mirrorCases = []filterCase{
	{
		name: "the target of the client", settings: `{"url": "http://mirror.example$request_uri"}`,
		requests: []requestCase{
			mirrored("POST http://shop.example/a%20b?c=d", "hello", "POST http://mirror.example:80/a%20b?c=d"),
			mirrored("GET https://shop.example/", "", "GET http://mirror.example:80/"),
		},
	},
	{name: "a fixed target", settings: `{"url": "https://mirror.example:8443/fixed"}`, requests: []requestCase{
		mirrored("GET http://shop.example/a", "", "GET https://mirror.example:8443/fixed"),
		mirrored("GET http://shop.example/a?c=d", "", "GET https://mirror.example:8443/fixed?c=d"),
	}},
	{name: "a fixed query", settings: `{"url": "http://mirror.example/?a=b"}`, requests: []requestCase{
		mirrored("GET http://shop.example/?c=d", "", "GET http://mirror.example:80/?a=b&c=d"),
	}},
	{
		name: "the host of the client", settings: `{"url": "http://$host/"}`,
		route: at("*.shop.example", "prefix", "/"),
		requests: []requestCase{
			mirrored("GET http://a.shop.example/", "", "GET http://a.shop.example:80/"),
			// The client has chosen this host, for which the Ingress has an alias.
			mirrored("GET http://evil.example/", "", ""), mirrored("GET http://shop.example/", "", ""),
		},
	},
	{name: "any host", settings: `{"url": "http://mirror.example", "host": "$http_x_host"}`, requests: []requestCase{
		mirrored("GET http://shop.example/ | X-Host: a.example", "", "GET http://mirror.example:80/"),
		mirrored("GET http://shop.example/", "", ""), mirrored("GET http://shop.example/ | X-Host: a b", "", ""),
	}},
	{name: "mirrors that fail", settings: `{"url": "http://mirror.example"}`, requests: []requestCase{
		mirroredTo(down), mirroredTo(busy), mirroredTo("500"),
	}},
	rejected("not a URL", `{"url": "mirror"}`, "the value is not a URL"),
	rejected("a variable of the response", `{"url": "http://mirror.example", "host": "$status"}`,
		"no variable $status"),
}

// mirrored returns a request with the request that the mirror gets.
func mirrored(request, body, asked string) requestCase {
	return requestCase{request: request, body: body, next: same, response: "200", service: "200", asked: asked}
}

// mirroredTo returns a request with the response of the mirror.
func mirroredTo(service string) requestCase {
	r := mirrored("GET http://shop.example/", "", "GET http://mirror.example:80/")
	r.service = service
	return r
}

// TestMirroredRequest checks the header fields, the host and the body of the request that a mirror gets.
func TestMirroredRequest(t *testing.T) {
	const about = "X-Request-ID: me | X-Real-IP: 192.0.2.1 | X-Forwarded-For: 192.0.2.1" +
		" | X-Forwarded-Host: shop.example | X-Forwarded-Port: 80 | X-Forwarded-Proto: http" +
		" | X-Forwarded-Scheme: http | X-Scheme: http"
	for name, c := range map[string]struct {
		settings, request, body, fields string
		host, sent                      string
		names                           message.Names
		headers                         *ir.Headers
	}{
		"usual": {
			settings: `{"url": "http://mirror.example:81"}`,
			request: "POST http://shop.example/ | X-Request-ID: me | X-Real-IP: 192.0.2.9 | X-Original-URL: /admin" +
				" | X-Forwarded-For: 192.0.2.9 | Connection: close | Expect: 100-continue" +
				" | ssl-client-verify: SUCCESS | X_Some: dropped | X-Some: thing | Cookie: a=b",
			body: "hello", sent: "hello", host: "mirror.example",
			fields: "X-Some: thing | Cookie: a=b | " + about + " | CDN-Loop: k8singress",
		},
		"without a body": {
			settings: `{"url": "http://mirror.example", "host": "$host.mirror.example", "without_body": true}`,
			request:  "POST http://shop.example/ | X-Request-ID: me | CDN-Loop: other | Via: 1.0 a", body: "hello",
			host: "shop.example.mirror.example", fields: about + " | Via: 1.0 a | CDN-Loop: other, k8singress",
		},
		"other names": {
			settings: `{"url": "http://mirror.example"}`, names: message.AllNames, host: "mirror.example",
			request: "GET http://shop.example/ | X-Request-ID: me | X_Some: thing | X_Verified: a | X-Verified: b",
			headers: &ir.Headers{Requests: []ir.Header{{Name: "X-Verified", Value: "of $namespace"}}},
			fields:  "X_Some: thing | X-Verified: of shop | " + about + " | CDN-Loop: k8singress",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnvironment(t)
				env.answer = "200"
				r := &requestCase{request: c.request, body: c.body}
				x, _ := r.exchange(t, nil)
				x.Names = c.names
				if c.headers != nil {
					x.Headers, _ = exchange.NewHeaders(c.headers, false)
				}
				r.serve(t, x, env.newFilter(t, "k8singress_mirror", c.settings))
				x.Close()
				synctest.Wait()
				if len(env.calls) != 1 {
					t.Fatalf("the mirror gets %d requests", len(env.calls))
				}
				call := env.calls[0]
				if fields := exchangetest.Text(call.Fields); fields != c.fields {
					t.Errorf("the mirror gets the fields\n%s, want\n%s", fields, c.fields)
				}
				if call.Host != c.host || string(call.Body) != c.sent || call.Namespace != "shop" {
					t.Errorf("the mirror gets host %s, body %q, namespace %s", call.Host, call.Body, call.Namespace)
				}
			})
		})
	}
}

// TestMirrorDrops checks that copies that are not sent are counted by their reason: a URL that is not valid for the
// request, and a body that the next handler does not read.
func TestMirrorDrops(t *testing.T) {
	for reason, request := range map[mirror.Reason]string{
		mirror.URL: "POST http://evil.example/", mirror.Body: "POST http://a.shop.example/",
	} {
		env := newEnvironment(t)
		x, _ := (&requestCase{request: request, body: "hello"}).exchange(t, at("*.shop.example", "prefix", "/"))
		f := env.newFilter(t, "k8singress_mirror", `{"url": "http://$host/"}`)
		if responded, err := f.Apply(x); responded || err != nil {
			t.Fatal(responded, err)
		}
		x.Close()
		dropped := env.dropped(t)
		if len(env.calls) != 0 || !maps.Equal(dropped, map[mirror.Reason]float64{reason: 1}) {
			t.Errorf("%s: the mirror gets %d requests, and dropped are %v", request, len(env.calls), dropped)
		}
	}
}

// dropped returns the number of copies that were dropped for each reason, without zeros.
func (e *environment) dropped(t *testing.T) map[mirror.Reason]float64 {
	t.Helper()
	all := map[mirror.Reason]float64{}
	for _, family := range fixture.Collect(t, e.mirrors.Collectors()...) {
		for _, metric := range family.Metric {
			if n := metric.Counter.GetValue(); n > 0 {
				all[mirror.Reason(metric.Label[0].GetValue())] = n
			}
		}
	}
	return all
}
