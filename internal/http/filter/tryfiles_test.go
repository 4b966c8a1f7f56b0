package filter_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

var tryFilesCases = []filterCase{
	{name: "a path", settings: `{"target": "/index.html?from=$uri&$args"}`, requests: []requestCase{
		reroutes("/a%20b?c=d", "/index.html?from=/a%20b&c=d"),
		{request: "POST http://shop.example/a", next: rerouted + "POST http://shop.example/index.html?from=/a&",
			response: "none"},
	}},
	{name: "a variable", settings: `{"target": "$arg_to"}`, requests: []requestCase{
		reroutes("/a?to=/b", "/b"), reroutes("/a?to=b", "/b"), reroutes("/a?to=@b", "/@b"),
		gets("GET http://shop.example/a?to=/../b", "400"),
	}},
	{name: "a name", settings: `{"target": "@page"}`, requests: []requestCase{reroutes("/a?b=c", "/a?b=c")}},
	{name: "an error", settings: `{"status": 404}`, requests: []requestCase{gets("GET http://shop.example/", "404")}},
	{name: "a success", settings: `{"status": 204}`, requests: []requestCase{gets("GET http://shop.example/", "204")}},
	rejected("nothing", `{}`, "neither a target nor a status"),
	rejected("both", `{"target": "/a", "status": 404}`, "neither a target nor a status"),
	rejected("an unclosed variable", `{"target": "/${a"}`, "no closing brace"),
}

// TestTryFilesName checks that try_files names a location.
func TestTryFilesName(t *testing.T) {
	f := newEnvironment(t).newFilter(t, "k8singress_try_files", `{"target": "@page"}`)
	x, _ := exchangetest.New(t, "GET http://shop.example/")
	if _, err := f.Apply(x); err != exchange.ErrReroute || x.Named != "@page" { //nolint:errorlint // It is not wrapped.
		t.Errorf("the name is %q, the error %v", x.Named, err)
	}
}
