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
