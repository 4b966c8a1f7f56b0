package hosts_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// named returns a setting with a server-snippet, which has locations with these names. everywhere is true for the
// snippet of the ConfigMap.
func named(everywhere bool, names ...string) setting {
	return func(c *hosts.Contribution) {
		c.Server = &hosts.Server{}
		if !everywhere {
			c.Server.Text = strings.Join(names, " ")
		}
		for _, name := range names {
			c.Server.Locations = append(c.Server.Locations, &hosts.Path{Everywhere: everywhere,
				Match: ir.PathMatch{Type: ir.LocationNamed, Path: name}, Backend: &ir.Backend{}})
		}
	}
}

// leading returns a setting with a configuration-snippet that passes requests to these locations.
func leading(names ...string) setting {
	return func(c *hosts.Contribution) {
		for _, name := range names {
			for _, p := range c.Paths["a.example"] {
				p.Filters = append(p.Filters, ir.TryFiles{Target: name})
			}
		}
	}
}

// TestMissingLocations checks the warnings for names of locations that do not exist.
func TestMissingLocations(t *testing.T) {
	const gets500 = ", so requests that error_page or try_files pass to it get 500; "
	web := rule("a.example", "/ web", "/b web")
	for name, c := range map[string]struct {
		all  []*hosts.Contribution
		want map[string]string
	}{
		"its own": {[]*hosts.Contribution{
			ingress("shop/a", 1, web, named(false, "@x", "@y"), leading("@y", "@x"))}, nil},
		"of another Ingress": {[]*hosts.Contribution{ingress("shop/a", 1, web, named(false, "@x")),
			ingress("shop/b", 2, rule("a.example", "/c web"), leading("@x", "@z"))},
			map[string]string{"shop/b": "has no location @z" + gets500 +
				"its locations with names are @x"}},
		"of another namespace": {[]*hosts.Contribution{ingress("shop/a", 1, web, named(false, "@x")),
			ingress("other/b", 2, rule("a.example", "/c web"), leading("@x"))},
			map[string]string{"other/b": "has no location @x" + gets500 +
				"this namespace has no locations with names"}},
		"of the ConfigMap": {[]*hosts.Contribution{ingress("shop/a", 1, web, named(true, "@x")),
			ingress("other/b", 2, rule("a.example", "/c web"), leading("@x"))}, nil},
		"without snippets": {[]*hosts.Contribution{ingress("shop/a", 1, web, leading("@x"))},
			map[string]string{"shop/a": "has no location @x"}},
	} {
		t.Run(name, func(t *testing.T) {
			merged := hosts.Merge("a.example", c.all, nil, &hosts.HostContext{})
			got := map[string]string{}
			for ref, problems := range merged.Problems {
				for _, p := range problems {
					if strings.Contains(p.Message, "location @") {
						got[ref.Namespace+"/"+ref.Name] += p.Message
					}
				}
			}
			for of, want := range c.want {
				if !strings.Contains(got[of], want) || strings.Count(got[of], "location @") != 1 {
					t.Errorf("%s: %q, want %q", of, got[of], want)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("the warnings are %q", got)
			}
		})
	}
}
