package ir_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// program has a template in each field that may contain templates. The templates are numbered in the order in which
// Templates returns them.
var program = ir.Program{
	Steps: []ir.Step{
		{Set: &ir.SetVariable{Name: "a", Value: "1"}},
		{If: &ir.If{
			Condition: ir.Condition{Variable: "b", Operator: ir.Equal, Value: "2"},
			Steps: []ir.Step{
				{Return: &ir.Return{Text: "3"}},
				{If: &ir.If{Condition: ir.Condition{Variable: "c", Operator: ir.Matches, Value: "(?<d>.)(?P<e>.)"}}},
			},
			Directives: &ir.Directives{AddHeaders: []ir.AddedHeader{{Value: "10"}}},
		}},
		{Rewrite: &ir.Rewrite{Pattern: "(?<f>.)", Target: "4"}},
		{Break: true},
	},
	Directives: ir.Directives{
		EndpointHeaders: []ir.Header{{Value: "5"}}, AddHeaders: []ir.AddedHeader{{Value: "6"}},
		InputHeaders:  []ir.MoreHeaders{{Set: []ir.Header{{Value: "7"}}, Clear: []string{"no"}}},
		MoreHeaders:   []ir.MoreHeaders{{Set: []ir.Header{{Value: "8"}}}},
		AuthVariables: []ir.SetVariable{{Name: "g", Value: "9"}},
		Errors:        ir.ErrorHandling{Pages: []ir.ErrorPage{{Target: "11"}}},
		Expires:       &ir.Expires{Template: "12"},
	},
}

func TestTemplates(t *testing.T) {
	want := []string{"1", "${b}", "2", "3", "${c}", "4", "5", "6", "12", "7", "8", "9", "11", "10"}
	if got := slices.Collect(program.Templates()); !slices.Equal(got, want) {
		t.Errorf("the templates are %v", got)
	}
	for n := range want {
		var first []string
		for text := range program.Templates() {
			if first = append(first, text); len(first) == n+1 {
				break
			}
		}
		if !slices.Equal(first, want[:n+1]) {
			t.Errorf("the first templates are %v", first)
		}
	}
	if own := program.OwnVariables(); !slices.Equal(own, []string{"a", "d", "e", "f", "g"}) {
		t.Errorf("it sets %v", own)
	}
}

// TestChangesNothing checks each field of Directives.
func TestChangesNothing(t *testing.T) {
	if d := (ir.Directives{}); !d.ChangesNothing() {
		t.Error("no directives change something")
	}
	for _, d := range []ir.Directives{
		program.Directives, {Unlogged: true}, {Hide: []string{"A"}}, {Pass: []string{"A"}}, {Expires: &ir.Expires{}},
		{CookieFlags: []ir.CookieFlags{}}, {AddHeaders: []ir.AddedHeader{}}, {DefaultType: "text/plain"},
		{Errors: ir.ErrorHandling{Intercept: new(bool)}}, {Errors: ir.ErrorHandling{Recursive: new(bool)}},
	} {
		if d.ChangesNothing() {
			t.Errorf("%+v changes nothing", d)
		}
	}
}

// TestProgramReadsRoute checks which programs may decide differently on two routes.
func TestProgramReadsRoute(t *testing.T) {
	deny := ir.Step{Return: &ir.Return{Status: 403}}
	when := func(variable string, operator ir.Operator, value string, steps ...ir.Step) ir.Step {
		return ir.Step{If: &ir.If{Condition: ir.Condition{Variable: variable, Operator: operator, Value: value},
			Steps: steps}}
	}
	set := func(name, value string) ir.Step { return ir.Step{Set: &ir.SetVariable{Name: name, Value: value}} }
	redirect := func(to string) ir.Step { return ir.Step{Return: &ir.Return{Status: 301, Text: to, HasText: true}} }
	for name, c := range map[string]struct {
		steps []ir.Step
		want  bool
	}{
		"no response":             {[]ir.Step{set("a", "$namespace")}, false},
		"the request":             {[]ir.Step{when("http_a", ir.Equal, "${host}$arg_b", deny)}, false},
		"the name of the Ingress": {[]ir.Step{when("ingress_name", ir.Equal, "a", deny)}, true},
		"in a value":              {[]ir.Step{when("host", ir.Equal, "$service_name", deny)}, true},
		"in a variable":           {[]ir.Step{set("a", "${namespace}"), when("a", ir.Equal, "b", deny)}, true},
		"its own variable":        {[]ir.Step{set("a", "$host"), when("a", ir.Equal, "b", deny)}, false},
		"a group of its own":      {[]ir.Step{when("host", ir.Matches, "(.*)", redirect("/$1x"))}, false},
		"a group of the route":    {[]ir.Step{when("host", ir.Equal, "a", redirect("/$1"))}, true},
		"in a negative condition": {[]ir.Step{when("host", ir.NotMatches, "(.*)", redirect("/$1"))}, true},
		"a rewrite":               {[]ir.Step{{Rewrite: &ir.Rewrite{Pattern: "(.*)", Target: "/$1"}}}, false},
		"a name of its own":       {[]ir.Step{when("host", ir.Matches, "(?<a>.*)", redirect("$a"))}, false},
		"a name in upper case":    {[]ir.Step{when("host", ir.Matches, "(?<A>.*)", redirect("$a"))}, false},
		"no name":                 {[]ir.Step{when("host", ir.Matches, `\(?<a>`, redirect("$a"))}, true},
		"a name of the route":     {[]ir.Step{when("tenant", ir.Equal, "a", deny)}, true},
		"an unknown variable":     {[]ir.Step{redirect("/$proxy_upstream_name")}, true},
	} {
		p := ir.Program{Steps: c.steps}
		if got := ir.GuardsByRoute([]ir.Filter{ir.Forbidden, p}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestWithAuthHeaders checks that external authentication keeps the header fields that programs use.
func TestWithAuthHeaders(t *testing.T) {
	uses := func(text string) ir.Directives {
		return ir.Directives{AuthVariables: []ir.SetVariable{{Name: "a", Value: text}}}
	}
	more := uses("${upstream_http_x_groups}$upstream_http_x_user")
	p := ir.Program{Directives: uses("$upstream_http_x_user,$upstream_cookie_a,$http_b"), Steps: []ir.Step{
		{If: &ir.If{Directives: &more}},
	}}
	auth := ir.ExternalAuth{URL: "http://auth"}
	before := []ir.Filter{p, auth, ir.AnyOf{Filters: []ir.Filter{auth, ir.Forbidden}}}
	keeps := auth
	keeps.KeptHeaders = []string{"x-groups", "x-user"}
	want := []ir.Filter{p, keeps, ir.AnyOf{Filters: []ir.Filter{keeps, ir.Forbidden}}}
	if got := ir.WithAuthHeaders(before); !reflect.DeepEqual(got, want) {
		t.Errorf("the filters are %+v", got)
	}
	if !reflect.DeepEqual(before[1], auth) {
		t.Error("the argument has changed")
	}
	if got := ir.WithAuthHeaders(before[1:]); !reflect.DeepEqual(got, before[1:]) {
		t.Errorf("without a program, the filters are %+v", got)
	}
}
