package filter_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

var pathGroupsCases = []filterCase{
	{name: "a prefix", settings: `{"names": ["id"]}`, requests: []requestCase{passes("GET http://shop.example/a")}},
	rejected("a variable of nginx", `{"names": ["host"]}`, "cannot set the variable $host"),
}

// TestPathGroups checks which variables the named groups of a route set.
func TestPathGroups(t *testing.T) {
	f := newEnvironment(t).newFilter(t, "k8singress_path_groups", `{"names": ["id", "rest", "other"]}`)
	for request, want := range map[string]string{
		"GET http://shop.example/users/1//a": "1,a,", "GET http://shop.example/USERS/%41/": "A,,",
		"GET http://shop.example/users": ",,",
	} {
		x, _ := exchangetest.New(t, request)
		x.Route = at("shop.example", "regex", "/users(/(?<ID>[^/]*)/(?P<rest>.*)(?<team>))?")
		x.SetVariable("team", "red")
		if responded, err := f.Apply(x); responded || err != nil {
			t.Fatal(responded, err)
		}
		got := x.Variable("id") + "," + x.Variable("rest") + "," + x.Variable("other")
		if got != want || x.Variable("team") != "red" || x.Variable("1") != "" {
			t.Errorf("%s: %s, want %s; team is %q, and $1 %q", request, got, want, x.Variable("team"), x.Variable("1"))
		}
	}
}
