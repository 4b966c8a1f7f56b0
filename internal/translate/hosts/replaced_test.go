package hosts_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// located returns a setting with a server-snippet, which has one location.
func located(of ir.MatchType, path string) setting {
	return func(c *hosts.Contribution) {
		c.Server = &hosts.Server{Text: path, Locations: []*hosts.Path{
			{Match: ir.PathMatch{Type: of, Path: path}, Line: 7, Backend: &ir.Backend{}}}}
	}
}

// TestReplacedPaths checks the warnings for locations that have the path of an Ingress.
func TestReplacedPaths(t *testing.T) {
	const own, foreign = "the location in line 7 replaces the path ", "the location in line 7 of the server-snippet of "
	web := rule("a.example", "/ web", "/open web", "=/exact web")
	guardedPub := []setting{rule("a.example", "/pub web"), guarded}
	for name, c := range map[string]struct {
		location setting
		a, b     string
	}{
		"a guarded path of another Ingress": {located(ir.LocationPrefix, "/pub"),
			own + "/pub of Ingress/shop/b on the host a.example, with its access control",
			foreign + "Ingress/shop/a gets the requests for this path on the host a.example, and replaces the " +
				"settings of this Ingress, with its access control"},
		"with a slash":          {located(ir.LocationPrefixOnly, "/pub/"), own + "/pub of Ingress/shop/b", foreign},
		"its own path":          {located(ir.LocationPrefix, "/open"), "", ""},
		"a path below":          {located(ir.LocationPrefix, "/pub/x"), "", ""},
		"one exact path":        {located(ir.LocationExact, "/pub"), "", ""},
		"a regular expression":  {located(ir.LocationRegex, "/pub"), "", ""},
		"an exact path of both": {located(ir.LocationExact, "/exact"), "", ""},
	} {
		merged := hosts.Merge("a.example", []*hosts.Contribution{
			ingress("shop/a", 1, web, c.location), ingress("shop/b", 2, guardedPub...)}, nil, &hosts.HostContext{})
		for object, want := range map[string]string{"a": c.a, "b": c.b} {
			got := ""
			for ref, problems := range merged.Problems {
				if ref.Name == object {
					got = problems[0].Message
				}
			}
			if want == "" && got != "" || !strings.HasPrefix(got, want) {
				t.Errorf("%s: the problem of %s is %q, want %q", name, object, got, want)
			}
		}
	}
	alone := hosts.Merge("a.example", []*hosts.Contribution{ingress("shop/a", 1, rule("a.example", "/ web"), guarded,
		located(ir.LocationPrefix, "/"))}, nil, &hosts.HostContext{})
	for _, problems := range alone.Problems {
		want := own + "/ of this Ingress on the host a.example, with its access control"
		if problems[0].Message != want {
			t.Errorf("the problem is %q, want %q", problems[0].Message, want)
		}
	}
	if len(alone.Problems) != 1 {
		t.Errorf("the problems are %v", alone.Problems)
	}
}
