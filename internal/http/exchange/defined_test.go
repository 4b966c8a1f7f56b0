package exchange_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/variables"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// TestDefinedVariables checks which variables take precedence, and that a request fails if a value cannot be computed.
func TestDefinedVariables(t *testing.T) {
	set, err := variables.New([]ir.Variable{
		{Name: "tenant", Map: &ir.Map{Source: "$host", Default: "none", Patterns: []ir.MapPattern{
			{Pattern: `^(.*)\.example$`, Value: "$1-$http_x_user"}}}},
		{Name: "host", Map: &ir.Map{Default: "never"}},
		{Name: "slow", Map: &ir.Map{
			Source: "$http_x_long", Patterns: []ir.MapPattern{{Pattern: "(a|b|ab|aa|aab)*x$"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	x, _ := exchangetest.New(t, "GET http://shop.example/ | X-User: $uri | X-Long: "+strings.Repeat("a", 60_000))
	if got := x.Variable("tenant"); got != "" || x.VariablesFailed() != nil {
		t.Errorf("without variables, it is %q", got)
	}
	x.Variables = set
	if got := x.Variable("tenant") + " " + x.Variable("host"); got != "shop-$uri shop.example" {
		t.Errorf("the values are %q", got)
	}
	x.SetVariable("tenant", "set")
	if got := x.Variable("tenant"); got != "set" || x.VariablesFailed() != nil {
		t.Errorf("after it was set, it is %q", got)
	}
	if got := x.Variable("slow"); got != "" || exchange.StatusOf(x.VariablesFailed()) != 400 {
		t.Errorf("a search that takes too long results in %q and the error %v", got, x.VariablesFailed())
	}
}

// TestUseVariables checks that values are only dropped if a request gets another set of variables.
func TestUseVariables(t *testing.T) {
	sets := map[string]*variables.Set{"none": nil}
	for name, value := range map[string]string{"old": "$text", "new": "new $text"} {
		set, err := variables.New([]ir.Variable{{Name: "defined", Map: &ir.Map{Source: "$host", Default: value}}})
		if err != nil {
			t.Fatal(err)
		}
		sets[name] = set
	}
	x, _ := exchangetest.New(t, "GET http://shop.example/")
	for _, c := range []struct{ text, use, want string }{
		{"1", "old", "1"}, {"2", "old", "1"}, {"2", "new", "new 2"}, {"3", "new", "new 2"}, {"3", "none", ""},
	} {
		x.SetVariable("text", c.text)
		x.UseVariables(sets[c.use])
		if got := x.Variable("defined"); got != c.want {
			t.Errorf("with the set %s, the value is %q, want %q", c.use, got, c.want)
		}
	}
}
