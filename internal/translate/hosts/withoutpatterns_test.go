package hosts_test

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// TestWithoutPatterns checks what is left of an Ingress whose namespace has too many regular expressions.
func TestWithoutPatterns(t *testing.T) {
	whole := func(aliases ...string) *hosts.Contribution {
		return ingress("a/old", 1, rule("s.example", "~/api/(.*) web", "default rest"), rooted("/app"), mutual("one"),
			aliased(aliases...))
	}
	main := ingress("a/main", 1, rule("s.example", "/ web"))
	next := ingress("a/canary", 2, rule("s.example", "/ next"), canary(percent(100)))
	for name, c := range map[string]struct {
		of *hosts.Contribution
		// size is the size of the expressions in other settings than paths, and beside are the other Ingresses.
		size   int
		beside []*hosts.Contribution
		want   []string
	}{
		"only in its paths": {of: whole("b.example"), want: []string{
			"exact / -> 302 to /app, a/web/80", "client certificates ca/one",
			"name b.example of s.example, status 0, by old",
		}},
		"in other settings": {of: whole("b.example", "~x+"), size: 1, want: []string{
			"exact / -> 503", "regex /api/ -> 503", "regex / -> 503", "client certificates ca/one, closed",
			"name b.example of s.example, status 0, by old",
		}},
		"with passthrough": {of: ingress("a/old", 1, rule("s.example", "/ web"), passing), size: 1, want: []string{
			"prefix / -> 503",
		}},
		"of a canary": {of: next, size: 1, beside: []*hosts.Contribution{main}, want: []string{
			"prefix / -> a/web/80",
		}},
		"of a default backend": {of: ingress("a/rest", 2, fallback("rest")), size: 1,
			beside: []*hosts.Contribution{ingress("a/main", 1, rule("s.example", "/app web"))}, want: []string{
				"prefix /app -> a/web/80", "prefix / -> 503",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			shown := func(of *hosts.Contribution) []string {
				return served(merged("s.example", &hosts.HostContext{}, append(slices.Clone(c.beside), of)...))
			}
			c.of.PatternSize = c.size
			before := shown(c.of)
			if diff := gocmp.Diff(c.want, shown(c.of.WithoutPatterns())); diff != "" {
				t.Errorf("is served (-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff(before, shown(c.of)); diff != "" {
				t.Errorf("the original has changed:\n%s", diff)
			}
		})
	}
}

// TestClosedPathsKeepTheirPolicy checks that routes that return 503 in place of other routes keep the settings that
// apply to all responses.
func TestClosedPathsKeepTheirPolicy(t *testing.T) {
	want := ir.RoutePolicy{Unlogged: true, Tracing: &ir.Tracing{Operation: "$request_method"}}
	unlogged := each(func(p *hosts.Path) { p.RoutePolicy = want })
	whole := ingress("a/old", 1, rule("s.example", "/api web", "default rest"), unlogged, rooted("/app"))
	whole.Root.RoutePolicy, whole.PatternSize = want, 1
	for name, of := range map[string]*hosts.Contribution{
		"without patterns":      whole.WithoutPatterns(),
		"invalid, with a guard": ingress("a/old", 1, rule("s.example", "~/api(.* web"), unlogged, guarded),
	} {
		t.Run(name, func(t *testing.T) {
			m := merged("s.example", &hosts.HostContext{}, of)
			if len(m.Host.Routes) == 0 {
				t.Fatal("there are no routes")
			}
			for _, r := range m.Host.Routes {
				if diff := gocmp.Diff(want, r.RoutePolicy); diff != "" {
					t.Errorf("%s %s (-want +got):\n%s", r.Match.Type, r.Match.Path, diff)
				}
			}
		})
	}
}

func TestWithoutExpressions(t *testing.T) {
	of := ingress("a/old", 1, aliased("b.example", "~x+", "*.example"))
	if got := of.WithoutExpressions().Aliases; !slices.Equal(got, []string{"b.example", "*.example"}) {
		t.Errorf("the aliases are %q", got)
	}
	if len(of.Aliases) != 3 {
		t.Errorf("the original has %q", of.Aliases)
	}
}
