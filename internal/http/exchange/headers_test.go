package exchange_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// header returns the header field in a text such as "X-A: b".
func header(text string) ir.Header {
	name, value, _ := strings.Cut(text, ": ")
	return ir.Header{Name: name, Value: value}
}

// TestHeaders checks what each kind of the administrator's header changes does.
func TestHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		of ir.Headers
		// fields are the header fields before the changes.
		fields string
		// constant are the fields without variables. toEndpoint, shown and toClient are the fields of a request for
		// an endpoint, the fields of its response that are not hidden, and the fields of the response to the client.
		constant, toEndpoint, shown, toClient string
	}{
		"nothing": {ir.Headers{}, "X-A: b", "", "X-A: b", "X-A: b", "X-A: b"},
		"requests": {ir.Headers{Requests: []ir.Header{header("X-A: of $namespace"), header("x-none: $http_x_gone"),
			header("X-Line: $uri"), header("X-Space:  a ")}},
			"X-A: b | X-None: c | X-Line: d", "", "X-A: of shop | X-Space: a", "X-A: b | X-None: c | X-Line: d",
			"X-A: b | X-None: c | X-Line: d"},
		"responses": {ir.Headers{Responses: []ir.Header{header("X-A: $request_method"), header("X-None: $http_x_gone"),
			header("X-Line: $uri"), header("X-Text: DENY"), header("X-Bad: $status")}},
			"x-a: b | X-A: c | X-None: d", "X-Text: DENY", "x-a: b | X-A: c | X-None: d", "x-a: b | X-A: c | X-None: d",
			"X-A: GET"},
		"hidden": {ir.Headers{Hidden: []string{"x-powered-by", "Server"}}, "Server: a | X-A: b | X-Powered-By: PHP", "",
			"Server: a | X-A: b | X-Powered-By: PHP", "X-A: b", "Server: a | X-A: b | X-Powered-By: PHP"},
		"the original URI": {ir.Headers{OriginalURI: true}, "X-A: b | X-Original-URI: /forged", "",
			"X-A: b | X-Original-URI: /x%0d%0ay?z", "X-A: b | X-Original-URI: /forged",
			"X-A: b | X-Original-URI: /forged"},
	} {
		t.Run(name, func(t *testing.T) {
			x, response := exchangetest.New(t, "GET http://shop.example/x%0d%0ay?z")
			headers, constant := exchange.NewHeaders(&c.of, false)
			x.Headers = headers
			if got := exchangetest.Text(constant); got != c.constant {
				t.Errorf("the constant fields are %q, want %q", got, c.constant)
			}
			if (headers == nil) != (name == "nothing") {
				t.Errorf("the other changes are %v", headers)
			}
			fields := exchangetest.Fields(c.fields)
			x.AddForEndpoint(&fields)
			if got := exchangetest.Text(fields); got != c.toEndpoint {
				t.Errorf("the endpoint gets %q, want %q", got, c.toEndpoint)
			}
			fields = exchangetest.Fields(c.fields)
			x.Hide(&fields)
			if got := exchangetest.Text(fields); got != c.shown {
				t.Errorf("the fields that are not hidden are %q, want %q", got, c.shown)
			}
			if err := x.Head(exchangetest.Response(t, "200 | "+c.fields)); err != nil {
				t.Fatal(err)
			}
			if got := exchangetest.Text(response.Response.Fields); got != c.toClient {
				t.Errorf("the client gets %q, want %q", got, c.toClient)
			}
		})
	}
}

// TestSendsToEndpoint checks which names of header fields the controller itself sends.
func TestSendsToEndpoint(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example/ | X-Client: a")
	sends := func(name string) bool {
		return x.SendsToEndpoint(func(own string) bool { return strings.EqualFold(own, name) })
	}
	if sends("X-Filter") || sends("X-Set") {
		t.Error("it sends a field that nothing sets")
	}
	x.ForEndpoint = exchangetest.Fields("X-Filter: 1")
	x.Headers, _ = exchange.NewHeaders(&ir.Headers{Requests: []ir.Header{header("X-Set: $host")},
		Responses: []ir.Header{header("X-Response: $host")}}, false)
	for name, want := range map[string]bool{"x-filter": true, "X-Set": true, "X-Client": false, "X-Response": false} {
		if got := sends(name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}
