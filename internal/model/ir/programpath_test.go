package ir_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

func set(name, value string) ir.Step { return ir.Step{Set: &ir.SetVariable{Name: name, Value: value}} }

func when(variable string, operator ir.Operator, value string, steps ...ir.Step) ir.Step {
	return ir.Step{If: &ir.If{
		Steps:     steps,
		Condition: ir.Condition{Variable: variable, Operator: operator, Value: value},
	}}
}

func rewrite(pattern string, flag ir.Flag) ir.Step {
	return ir.Step{Rewrite: &ir.Rewrite{Pattern: pattern, Target: "/x", Flag: flag}}
}

var denied, stop = ir.Step{Return: &ir.Return{Status: 403}}, ir.Step{Break: true}

// otherWays is expected if the path decides in other ways than by conditions on the path.
const otherWays = "others"

// programsByPath lists programs, and the conditions on the path that decide whether they respond.
var programsByPath = map[string]struct {
	steps []ir.Step
	want  string
}{
	"nothing":               {nil, ""},
	"every request":         {[]ir.Step{denied}, ""},
	"a header":              {[]ir.Step{when("http_a", ir.Matches, "b", denied)}, ""},
	"the route":             {[]ir.Step{when("location_path", ir.Equal, "/", denied)}, ""},
	"a header and a header": {[]ir.Step{when("http_a", ir.Equal, "$http_b", denied)}, ""},
	"the path":              {[]ir.Step{when("uri", ir.Matches, "^/admin", denied)}, "$uri ~ ^/admin;"},
	"the target": {
		[]ir.Step{when("request_uri", ir.NotMatchesFold, "^/a", denied)}, "$request_uri !~* ^/a;",
	},
	"the escaped target":           {[]ir.Step{when("escaped_request_uri", ir.IsTrue, "", denied)}, otherWays},
	"the document":                 {[]ir.Step{when("document_uri", ir.NotEqual, "/", denied)}, "$document_uri != /;"},
	"a template":                   {[]ir.Step{when("http_a", ir.Equal, "b${uri}", denied)}, otherWays},
	"a group of the route by name": {[]ir.Step{when("http_a", ir.Equal, "$uris", denied)}, otherWays},
	"a group of the route":         {[]ir.Step{when("1", ir.Equal, "admin", denied)}, otherWays},
	"a group before a digit":       {[]ir.Step{when("http_a", ir.Equal, "$12", denied)}, otherWays},
	"a header below the path": {
		[]ir.Step{when("uri", ir.Matches, "^/a", when("http_a", ir.IsTrue, "", denied))}, "$uri ~ ^/a;",
	},
	"the path decides on nothing": {
		[]ir.Step{when("uri", ir.Matches, "^/a", set("a", "b")), denied}, "",
	},
	"other directives": {
		[]ir.Step{when("uri", ir.Matches, "^/a"), when("http_a", ir.IsTrue, "", denied)}, "",
	},
	"a variable": {
		[]ir.Step{set("a", "$uri"), when("a", ir.Equal, "/a", denied)}, otherWays,
	},
	"a variable of a variable": {
		[]ir.Step{set("a", "$uri"), set("b", "${a}x"), when("b", ir.IsTrue, "", denied)}, otherWays,
	},
	"another variable": {
		[]ir.Step{set("a", "$uri"), set("b", "$host"), when("b", ir.IsTrue, "", denied)}, "",
	},
	"a variable set by path": {
		[]ir.Step{when("uri", ir.Matches, "^/a", set("a", "1")), when("a", ir.Equal, "1", denied)}, "$uri ~ ^/a;",
	},
	"a variable of the round before": {[]ir.Step{when("a", ir.IsTrue, "", denied), set("a", "$uri")}, otherWays},
	"a named group": {
		[]ir.Step{when("uri", ir.Matches, "^/(?<a>.*)"), when("a", ir.Equal, "b", denied)}, otherWays,
	},
	"a named group of a header": {
		[]ir.Step{when("http_a", ir.Matches, "(?<b>.)"), when("b", ir.Equal, "c", denied)}, otherWays,
	},
	"a named group of a rewrite": {
		[]ir.Step{when("a", ir.IsTrue, "", denied), rewrite("^/(?<a>b)", ir.BreakFlag)}, otherWays,
	},
	"a break by path":             {[]ir.Step{when("uri", ir.Matches, "^/public", stop), denied}, "$uri ~ ^/public;"},
	"a break by header":           {[]ir.Step{when("http_a", ir.Equal, "b", stop), denied}, ""},
	"behind a break":              {[]ir.Step{stop, when("uri", ir.Matches, "^/a", denied)}, ""},
	"a rewrite that stays":        {[]ir.Step{rewrite("^/a", ir.BreakFlag)}, ""},
	"behind a rewrite that stays": {[]ir.Step{rewrite("^/a", ir.BreakFlag), denied}, "$uri ~ ^/a;"},
	"another route":               {[]ir.Step{rewrite("^/a", ir.Last)}, "$uri ~ ^/a;"},
	"another route at the end":    {[]ir.Step{rewrite("^/a", ir.NoFlag)}, "$uri ~ ^/a;"},
	"a redirect":                  {[]ir.Step{rewrite("^(/a)$", ir.RedirectFlag)}, "$uri ~ ^(/a)$;"},
	"a permanent redirect":        {[]ir.Step{rewrite("^/a", ir.Permanent)}, "$uri ~ ^/a;"},
	"a redirect of every path":    {[]ir.Step{rewrite("^(.*)$", ir.Permanent)}, ""},
	"a redirect with break": {[]ir.Step{{Rewrite: &ir.Rewrite{Pattern: "^/a", Target: "https://a.example/",
		Flag: ir.BreakFlag}}}, "$uri ~ ^/a;"},
	"all paths of a header": {
		[]ir.Step{when("http_a", ir.IsTrue, "", rewrite("^", ir.Last))}, "",
	},
	"nearly every path": {[]ir.Step{rewrite("^/(.+)$", ir.Permanent)}, "$uri ~ ^/(.+)$;"},
}

// TestPathConditions checks which conditions on the path decide whether a program responds.
func TestPathConditions(t *testing.T) {
	for name, c := range programsByPath {
		program := ir.Program{Steps: c.steps}
		conditions, all := program.PathConditions()
		got := otherWays
		if all {
			got = ""
		}
		for _, c := range conditions {
			got += fmt.Sprintf("$%s %s %s;", c.Variable, c.Operator, c.Value)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestConditionsOnPathGroups checks that the path also decides about variables that both a named group of the path and
// the program set.
func TestConditionsOnPathGroups(t *testing.T) {
	steps := []ir.Step{
		when("host", ir.Matches, "^a", set("id", "1")),
		when("id", ir.Equal, "2", ir.Step{Return: &ir.Return{Status: 403}}),
	}
	for _, groups := range [][]string{nil, {"other"}, {"id"}} {
		conditions, all := (&ir.Program{Steps: steps, PathGroups: groups}).PathConditions()
		if want := !slices.Contains(groups, "id"); all != want || conditions != nil {
			t.Errorf("%v: %v, %t", groups, conditions, all)
		}
	}
}

// TestHeaderDecisions checks that the variables in the request headers of a program count as decisions.
func TestHeaderDecisions(t *testing.T) {
	for name, c := range map[string]struct {
		header string
		steps  []ir.Step
		want   bool
	}{
		"the target itself":   {"$request_uri", nil, false},
		"another variable":    {"$a", []ir.Step{set("b", "$request_uri"), set("a", "$host")}, false},
		"a copy":              {"${a}", []ir.Step{set("a", "$request_uri")}, true},
		"by a condition":      {"$a", []ir.Step{when("request_uri", ir.Matches, "^/a", set("a", "1"))}, true},
		"by a named group":    {"x$a", []ir.Step{when("request_uri", ir.Matches, "^/(?<a>.)")}, true},
		"by another variable": {"$a", []ir.Step{when("host", ir.Matches, "^a", set("a", "1"))}, false},
	} {
		program := ir.Program{Steps: c.steps}
		program.EndpointHeaders = []ir.Header{{Name: "X-A", Value: c.header}}
		conditions, all := program.WithHeaderDecisions().PathConditions()
		if got := conditions != nil || !all; got != c.want || len(program.Steps) != len(c.steps) {
			t.Errorf("%s: %t, %v", name, got, conditions)
		}
	}
}
