package exchange_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// TestID checks which IDs of clients are used, and that other requests get an ID, unless that is disabled.
func TestID(t *testing.T) {
	for fields, want := range map[string]string{
		"X-Request-ID: me": "me", "x-request-id: a-b/c=": "a-b/c=",
		"X-Request-ID: " + strings.Repeat("a", 128): strings.Repeat("a", 128),
		"": "", "X-Request-ID:": "", "X-Request-ID: " + strings.Repeat("a", 129): "", "X-Request-ID: a b": "",
		`X-Request-ID: a"b`: "", `X-Request-ID: a\b`: "", "X-Request-ID: \u00e4": "", "X-Request-ID: a\x00b": "",
		"X-Request-ID: a\x7f": "", "X-Request-ID: a | X-Request-ID: a": "",
	} {
		x, _ := exchangetest.New(t, "GET http://shop.example/ | "+fields)
		id := x.ID()
		if want != "" && id != want || want == "" && (len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "") {
			t.Errorf("%q: the ID is %q, want %q", fields, id, want)
		}
		if again := x.ID(); again != id {
			t.Errorf("%q: the ID %q becomes %q", fields, id, again)
		}
		x, _ = exchangetest.New(t, "GET http://shop.example/ | "+fields)
		x.Global = &ir.Global{NoRequestID: true}
		if id := x.ID(); id != want {
			t.Errorf("%q: if IDs are not generated, it is %q, want %q", fields, id, want)
		}
	}
}

// TestIDsDiffer checks that both halves of an ID are random.
func TestIDsDiffer(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example/")
	y, _ := exchangetest.New(t, "GET http://shop.example/")
	if a, b := x.ID(), y.ID(); a[:16] == b[:16] || a[16:] == b[16:] || a[:16] == a[16:] {
		t.Errorf("two requests have the IDs %s and %s", a, b)
	}
}

// TestSubmatch checks the groups of a route with and without a regular expression.
func TestSubmatch(t *testing.T) {
	compiled, err := pattern.CompilePath("/a/(.*)")
	if err != nil {
		t.Fatal(err)
	}
	route := &exchange.Route{Regex: compiled}
	if got := route.Submatch("/A/bc"); !slices.Equal(got, []int{0, 5, 3, 5}) {
		t.Errorf("the groups of a match are %v", got)
	}
	if got := route.Submatch("/b"); got != nil {
		t.Errorf("the groups of another path are %v", got)
	}
	if got := new(exchange.Route).Submatch("/a/b"); got != nil {
		t.Errorf("the groups without an expression are %v", got)
	}
}

func TestNamespace(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example/")
	if got := x.Namespace(); got != "" {
		t.Errorf("without a backend it is %q", got)
	}
	x.Backend = balancer.New("stock/web/80")
	if got := x.Namespace(); got != "stock" {
		t.Errorf("it is %q", got)
	}
}

// TestClose checks that the functions for the end are called once, in their order.
func TestClose(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example/")
	var called []int
	for i := range 3 {
		x.AtEnd(func() { called = append(called, i) })
	}
	x.Close()
	x.Close()
	if !slices.Equal(called, []int{0, 1, 2}) {
		t.Errorf("called are %v", called)
	}
}

// TestEndResponse checks that the functions are called once, the last one first, and that each gets the error of the
// one before.
func TestEndResponse(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example/")
	for _, name := range []string{"first", "second"} {
		x.ResponseEnds = append(x.ResponseEnds, func(err error) error { return fmt.Errorf("%s(%w)", name, err) })
	}
	failed := errors.New("failed")
	if err := x.EndResponse(failed); err.Error() != "first(second(failed))" {
		t.Errorf("the error is %v", err)
	}
	if err := x.EndResponse(failed); err == nil || err.Error() != "failed" {
		t.Errorf("the second call returns %v", err)
	}
}

// TestClient checks the description of the client, which stays the same if a filter changes the host.
func TestClient(t *testing.T) {
	trusting := realip.New(ir.Clients{UseForwarded: true, AppendForwarded: true, Trusted: []string{"192.0.2.0/24"}})
	for name, c := range map[string]struct {
		clients *realip.Policy
		from    string
		want    realip.Client
		// forwardedFor is the value of X-Forwarded-For for endpoints.
		forwardedFor string
	}{
		"the peer": {realip.New(ir.Clients{}), "192.0.2.1", realip.Client{IP: "192.0.2.1", Peer: "192.0.2.1",
			Proto: "http", Host: "shop.example:81", Port: "80"}, "192.0.2.1"},
		"a trusted proxy": {trusting, "192.0.2.1", realip.Client{IP: "203.0.113.9", Peer: "192.0.2.1", Proto: "https",
			Host: "www.example", Port: "8443", Believed: true}, "203.0.113.9, 192.0.2.1"},
		"another proxy": {trusting, "192.0.3.1", realip.Client{IP: "192.0.3.1", Peer: "192.0.3.1", Proto: "http",
			Host: "shop.example:81", Port: "80"}, "192.0.3.1"},
	} {
		x, _ := exchangetest.New(t, "GET http://shop.example:81/ | X-Forwarded-For: 203.0.113.9"+
			" | X-Forwarded-Proto: https | X-Forwarded-Host: www.example | X-Forwarded-Port: 8443")
		exchangetest.SetClient(x, netip.MustParseAddr(c.from))
		x.Clients = c.clients
		first := *x.Client()
		x.Host = "backend.example"
		if first != c.want || *x.Client() != c.want || x.ClientIP() != c.want.IP || x.ForwardedFor() != c.forwardedFor {
			t.Errorf("%s: the client is %+v, later %+v, want %+v; X-Forwarded-For is %q", name, first, *x.Client(),
				c.want, x.ForwardedFor())
		}
	}
}
