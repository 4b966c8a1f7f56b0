package exchange_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/variables"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// TestVariablesOfNamespaces checks which variables and capture groups a request keeps for a route of another namespace.
func TestVariablesOfNamespaces(t *testing.T) {
	const server, other = "server", "other"
	matching := func(x *exchange.Exchange, text string) {
		x.SetGroups(text, []int{0, len(text), 0, len(text)}, []string{"", "group"})
	}
	running := func(x *exchange.Exchange, program, value string) {
		if x.BeginServerProgram(program) {
			x.SetVariable("server", value)
			matching(x, value)
			x.EndServerProgram()
		}
	}
	tenant := func(x *exchange.Exchange) {
		x.SetVariable("server", "t")
		x.SetVariable("tenant", "t")
		x.SetVariable("tenant", x.Variable("tenant")+"t")
		matching(x, "t")
	}
	again := func(x *exchange.Exchange) {
		x.ServerProgram = nil
		running(x, server, "again "+x.Variable("tenant"))
	}
	const dropped = "    map:"
	for name, c := range map[string]struct {
		do     func(x *exchange.Exchange)
		keeps  bool
		before string
		want   string
		runs   bool
	}{
		"nothing": {func(*exchange.Exchange) {}, false, dropped, dropped, true},
		"the host": {func(x *exchange.Exchange) { running(x, server, "s") }, true,
			"s  s s map:", "s  s s map:", false},
		"another host program": {func(x *exchange.Exchange) { running(x, other, "s") }, false,
			"s  s s map:", dropped, true},
		"a tenant": {tenant, false, "t tt t t map:tt", dropped, true},
		"a tenant and a program without variables": {func(x *exchange.Exchange) {
			x.BeginServerProgram(server)
			x.EndServerProgram()
			tenant(x)
		}, true, "t tt t t map:tt", dropped, false},
		"the host and a tenant": {func(x *exchange.Exchange) {
			running(x, server, "s")
			tenant(x)
		}, true, "t tt t t map:tt", "s  s s map:", false},
		"the host after a tenant": {func(x *exchange.Exchange) {
			running(x, server, "s")
			tenant(x)
			again(x)
		}, true, "again tt tt again tt again tt map:tt", dropped, true},
		"the host only after a tenant": {func(x *exchange.Exchange) {
			tenant(x)
			again(x)
		}, true, "again tt tt again tt again tt map:tt", dropped, true},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := variables.New([]ir.Variable{{Name: "map", Map: &ir.Map{Source: "$tenant", Default: "$tenant"}}})
			if err != nil {
				t.Fatal(err)
			}
			template, err := exchange.ParseTemplate("$server $tenant $group $1 map:$map", "1")
			if err != nil {
				t.Fatal(err)
			}
			x, _ := exchangetest.New(t, "GET http://shop.example/")
			x.Variables = set
			values := func() string { return template.Expand(x.Variable) }
			c.do(x)
			before := values()
			x.ChangeNamespace(c.keeps)
			if got := values(); before != c.before || got != c.want {
				t.Errorf("the values are %q, and then %q", before, got)
			}
			if runs := x.BeginServerProgram(server); runs != c.runs {
				t.Errorf("the program of the host runs: %t", runs)
			}
		})
	}
}
