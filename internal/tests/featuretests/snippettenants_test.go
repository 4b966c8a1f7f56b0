package featuretests

import "testing"

// TestSnippetVariablesOfTenants checks that a rewrite or an error page that leads to a path of another namespace does
// not pass on the variables with which the snippets of this namespace grant access.
func TestSnippetVariablesOfTenants(t *testing.T) {
	location := func(path, snippet string) string {
		return annotate(rule(path[1:], "h.example", "Prefix", path, "one"), "configuration-snippet", snippet)
	}
	const guard = "if ($http_x_key = secret) { set $ok 1; } if ($ok != 1) { return 403; }"
	in := start(t, rivals(t)+allowingSnippets(
		`server-snippet: "set $shared 0; if ($http_x_key = secret) { set $shared 1; }"`)+
		tenant("a", 1,
			location("/set", "set $ok 1; set $shared 1; rewrite ^/set(/.*) $1 last;"),
			location("/group", "rewrite ^/group/(?<ok>1)(/.*) $2 last;"),
			location("/page", "set $ok 1; set $shared 1; error_page 404 = $arg_to; return 404;"),
			location("/a", guard))+
		tenant("b", 2, location("/b", guard), location("/c",
			"if ($http_x_never) { set $shared 0; } if ($shared != 1) { return 403; }")),
		"configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for path, want := range map[string]int{
			"/a": 403, "/b": 403, "/c": 403, "/set/a": 200, "/set/b": 403, "/set/c": 403,
			"/group/1/a": 200, "/group/1/b": 403, "/page?to=/a": 200, "/page?to=/b": 403, "/page?to=/c": 403,
		} {
			if got := in.get("h.example", path); got.status != want {
				t.Errorf("%s is %d, want %d", path, got.status, want)
			}
			if got := in.fetch(in.client, in.origin("h.example")+path, "X-Key: secret"); got.status != 200 {
				t.Errorf("%s with the key is %d", path, got.status)
			}
		}
	})
}
