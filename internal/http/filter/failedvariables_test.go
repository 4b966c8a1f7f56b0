package filter_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/variables"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// TestFailedVariables checks that filters reject a request if the value of a variable of http-snippet cannot be
// computed, and ask no service.
func TestFailedVariables(t *testing.T) {
	set, err := variables.New([]ir.Variable{{Name: "slow", Map: &ir.Map{
		Source: "$http_x_long", Patterns: []ir.MapPattern{{Pattern: "(a|b|ab|aa|aab)*x$", Value: "x"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ handler, settings string }{
		{"rewrite_redirect", `{"target": "https://other.example/$slow"}`},
		{"rate_limit", `{"zone": "a", "requests_per_second": 1, "key": "$slow", "status_code": 503}`},
		{"zone_limits", `{"requests": [{"zone": {"name": "a", "key": "$slow", "requests_per_second": 1}}]}`},
		{"zone_limits", `{"connections": [{"zone": {"name": "a", "key": "$slow"}, "max": 1}]}`},
		{"try_files", `{"target": "/$slow"}`},
		{"external_auth", `{"url": "http://auth.example/$slow"}`},
		{"external_auth", `{"url": "http://auth.example/", "cache_key": "$slow",
			"cache_for": [{"statuses": [200], "for": 60000000000}]}`},
		{"program", steps(`{"return": {"status": 302, "text": "/$slow", "has_text": true}}`)},
		{"program", `{"steps": [{"rewrite": {"pattern": "^", "target": "/a", "flag": "last"}}],
			"input_headers": [{"set": [{"name": "X-A", "value": "$slow"}]}]}`},
	} {
		env := newEnvironment(t)
		f := env.newFilter(t, "k8singress_"+c.handler, c.settings)
		x, _ := exchangetest.New(t, "GET http://shop.example/ | X-Long: "+strings.Repeat("a", 60_000))
		x.Variables = set
		responded, err := f.Apply(x)
		if responded || errors.Is(err, exchange.ErrReroute) || exchange.StatusOf(err) != http.StatusBadRequest {
			t.Errorf("%s %s: %t %v", c.handler, c.settings, responded, err)
		}
	}
}
