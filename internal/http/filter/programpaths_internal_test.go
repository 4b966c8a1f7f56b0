package filter

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// TestPathGuard checks which paths a program rejects because they can be read in several ways.
func TestPathGuard(t *testing.T) {
	denied := []ir.Step{{Return: &ir.Return{Status: 403}}}
	when := func(variable string, operator ir.Operator, value string) ir.Step {
		return ir.Step{If: &ir.If{Condition: ir.Condition{Variable: variable, Operator: operator, Value: value},
			Steps: denied}}
	}
	long := "/" + strings.Repeat("a;", 3000)
	for name, c := range map[string]struct {
		step ir.Step
		// served are paths that pass, and rejected are paths that get 400.
		served, rejected []string
	}{
		"a folder": {
			when("uri", ir.Matches, "^/admin"),
			[]string{
				"/admin", "/%61dmin", "/a//b", "/a;v=1", "/a%2Fb", "/100%25", "/x/../y", "/a%252Fadmin", "/?//admin",
				"/admin//x", "/admin/a;b",
			},
			[]string{
				"//admin", "/public/..;/admin", "/public/..%2fadmin", "/public/..%5cadmin", `/public/..\admin`,
				"/%2561dmin", "/admin/../public", long,
			},
		},
		"in any case": {when("uri", ir.NotMatchesFold, "^/ADMIN"), []string{"/a//b"}, []string{"/x/..;/admin"}},
		"one path":    {when("uri", ir.NotEqual, "/admin"), []string{"/a;b", long[:64]}, []string{"/admin;a"}},
		"the target": {
			when("request_uri", ir.Equal, "/admin?q"), []string{"/a;b", "/a;b?q"}, []string{"/admin;a?q"},
		},
		"another target": {
			when("request_uri", ir.Matches, "admin$"), []string{"/admin;a?q", "/x"}, []string{"/admin;a"},
		},
		"the whole query": {when("request_uri", ir.Matches, "q=//"), []string{"/a?q=//", "/a;b?q=//"}, nil},
		"a redirect": {
			ir.Step{Rewrite: &ir.Rewrite{Pattern: "^(/app)$", Target: "$1/", Flag: ir.RedirectFlag}},
			[]string{"/app", "/app//a", "/app/a%2Fb", "/app/a;b=c"}, []string{"/app;b", "//app"},
		},
		"a group of the route": {when("1", ir.Equal, "a"), []string{"/a", "/%61"}, []string{"/a//b", "/a;b"}},
		"a header":             {when("http_a", ir.IsTrue, ""), []string{"/a//b", "//admin", long}, nil},
	} {
		g, err := newPathGuard(&ir.Program{Steps: []ir.Step{c.step}})
		if err != nil {
			t.Fatal(err)
		}
		check := func(path string, want int) {
			t.Helper()
			x, _ := exchangetest.New(t, "GET http://shop.example"+path)
			if err := g.check(x); err == nil && want == 400 || err != nil && exchange.StatusOf(err) != want {
				t.Errorf("%s, %s: %v", name, path, err)
			}
		}
		for _, path := range c.served {
			check(path, 0)
		}
		for _, path := range c.rejected {
			check(path, 400)
		}
	}
}

// TestPathGuardOfInvalid checks that an invalid regular expression is an error.
func TestPathGuardOfInvalid(t *testing.T) {
	for _, operator := range []ir.Operator{ir.Matches, ir.MatchesFold} {
		of := &ir.Program{Steps: []ir.Step{{If: &ir.If{Steps: []ir.Step{{Return: &ir.Return{Status: 403}}},
			Condition: ir.Condition{Variable: "uri", Operator: operator, Value: "("}}}}}
		if g, err := newPathGuard(of); err == nil {
			t.Errorf("%q: %+v", operator, g)
		}
	}
}
