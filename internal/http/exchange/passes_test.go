package exchange_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

func TestVia(t *testing.T) {
	for _, c := range []struct {
		major, minor uint8
		// fields are the fields of the request. off and on are the values of Via without and with this controller.
		fields, off, on string
	}{
		{1, 1, "", "", "1.1 k8singress"}, {1, 0, "", "", "1.0 k8singress"}, {2, 0, "", "", "2.0 k8singress"},
		{3, 0, " | Via: 1.0 a, 1.1 b | via: 2.0 c", "1.0 a, 1.1 b, 2.0 c", "1.0 a, 1.1 b, 2.0 c, 3.0 k8singress"},
	} {
		x, _ := exchangetest.New(t, "GET http://shop.example/"+c.fields)
		x.Major, x.Minor = c.major, c.minor
		if got := x.Via(); got != c.off {
			t.Errorf("%+v: without headers it is %q", c, got)
		}
		x.Headers, _ = exchange.NewHeaders(&ir.Headers{OriginalURI: true}, false)
		if got := x.Via(); got != c.off {
			t.Errorf("%+v: without this controller it is %q", c, got)
		}
		x.Headers, _ = exchange.NewHeaders(&ir.Headers{}, true)
		if got := x.Via(); got != c.on {
			t.Errorf("%+v: it is %q", c, got)
		}
	}
}

// TestPasses checks the value of CDN-Loop for an endpoint, and the number of passes that a request claims.
func TestPasses(t *testing.T) {
	for fields, c := range map[string]struct {
		loop   string
		passes int
	}{
		"":                                   {"k8singress", 0},
		" | CDN-Loop: other":                 {"other, k8singress", 0},
		" | cdn-loop: k8singress":            {"k8singress, k8singress", 1},
		" | CDN-Loop: a;v=1, \tk8singress;b": {"a;v=1, \tk8singress;b, k8singress", 1},
		" | CDN-Loop: k8singress,k8singress | CDN-Loop: x | CDN-Loop: k8singress": {
			"k8singress,k8singress, x, k8singress, k8singress", 3},
		" | CDN-Loop: k8singress2, K8SINGRESS": {"k8singress2, K8SINGRESS, k8singress", 0},
		" | X-Loop: k8singress":                {"k8singress", 0},
	} {
		x, _ := exchangetest.New(t, "GET http://shop.example/"+fields)
		if loop, passes := x.CDNLoop(), exchange.CountPasses(x.Request); loop != c.loop || passes != c.passes {
			t.Errorf("%q: CDN-Loop is %q, want %q; %d passes, want %d", fields, loop, c.loop, passes, c.passes)
		}
	}
}
