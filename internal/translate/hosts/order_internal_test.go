package hosts

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// of returns the contribution of an Ingress in a namespace, with several paths of a.example. A path after "~" is a
// regular expression, a path after "=" is exact.
func of(namespace string, age int, paths ...string) *Contribution {
	c := aged(age, namespace, "/")
	c.Object.(*networkingv1.Ingress).ObjectMeta = metav1.ObjectMeta{
		Namespace: namespace, Name: "main", CreationTimestamp: c.Object.GetCreationTimestamp(),
	}
	c.Paths["a.example"] = nil
	for _, path := range paths {
		p := &Path{Match: ir.PathMatch{Type: ir.MatchPrefix, Path: path}, Backend: &ir.Backend{ID: namespace + "/s/80"}}
		if path[0] == '~' {
			p.Match.Path, p.Regex = path[1:], true
		} else if path[0] == '=' {
			p.Match.Path, p.Match.Type = path[1:], ir.MatchExact
		}
		c.Paths["a.example"] = append(c.Paths["a.example"], p)
	}
	return c
}

// TestOrderOfNamespaces checks that a regular expression of one namespace changes neither the type nor the order of
// another namespace's paths.
func TestOrderOfNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		results []*Contribution
		want    []string
	}{
		"a long expression that says nothing": {
			[]*Contribution{of("a", 1, "/", "/admin", "=/public"), of("b", 2, "~/()()()()()()()()()")},
			[]string{"a exact /public", "a prefix /admin", "a prefix /", "b regex /()()()()()()()()()"},
		},
		"an expression that says more": {
			[]*Contribution{of("a", 1, "/", "/admin"), of("b", 2, "~/api(/|$)(.*)")},
			[]string{"a prefix /admin", "b regex /api(/|$)(.*)", "a prefix /"},
		},
		"an expression that says as much": {
			[]*Contribution{of("a", 1, "/", "/admin"), of("b", 2, "~/admin(.*)")},
			[]string{"a prefix /admin", "b regex /admin(.*)", "a prefix /"},
		},
		"an expression that begins with a choice": {
			[]*Contribution{of("a", 1, "/", "/admin"), of("b", 2, "~/xxxxxxxxxxxx|/admin")},
			[]string{"a prefix /admin", "a prefix /", "b regex /xxxxxxxxxxxx|/admin"},
		},
		"expressions of the owner": {
			[]*Contribution{of("a", 1, "~/api/(.*)", "~/(.*)", "/plain"), of("b", 2, "/", "/api", "/api/more", "=/x")},
			[]string{"b prefix /api/more", "a regex /api/(.*)", "a regex /plain", "b prefix /api", "b exact /x",
				"a regex /(.*)", "b prefix /"},
		},
		"expressions of both": {
			[]*Contribution{of("a", 1, "~/a(.*)", "~/(.*)"), of("b", 2, "~/()()()()(.*)", "~/b(.*)")},
			[]string{"a regex /a(.*)", "a regex /(.*)", "b regex /()()()()(.*)", "b regex /b(.*)"},
		},
		"of one namespace, by their texts": {
			[]*Contribution{of("a", 1, "/plain", "~/()()()()", "=/exact")},
			[]string{"a regex /()()()()", "a regex /plain", "a regex /exact"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				m := Merge("a.example", c.results, nil, &HostContext{})
				var got []string
				for _, r := range m.Host.Routes {
					got = append(got, fmt.Sprint(r.Origin.Namespace, " ", r.Match.Type, " ", r.Match.Path))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				slices.Reverse(c.results)
			}
		})
	}
}

func TestLiteral(t *testing.T) {
	for path, want := range map[string]int{
		"/api/(.*)": 5, "/api(/|$)(.*)": 4, "/": 1, "/(api)/x": 1, "/api?": 3, "/x+y": 1, "/x|/yyyy": 1, "/(": 1,
		"/[a-z]": 1, "/()()": 1, "/é": 3,
	} {
		if got := literal(ir.PathMatch{Type: ir.MatchRegex, Path: path}); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	for path, want := range map[string]int{"/": 1, "/api": 4, "/api/": 4} {
		if got := literal(ir.PathMatch{Type: ir.MatchPrefix, Path: path}); got != want {
			t.Errorf("the prefix %s: %d, want %d", path, got, want)
		}
	}
}
