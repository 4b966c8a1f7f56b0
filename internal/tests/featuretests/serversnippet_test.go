package featuretests

import (
	"net/http"
	"testing"
)

// allowingSnippets is the ConfigMap that allows snippets.
func allowingSnippets(data ...string) string {
	return global(append(data, "annotations-risk-level: Critical", `allow-snippet-annotations: "true"`)...)
}

// servingPaths is a server-snippet with a location of each kind.
const servingPaths = `
more_set_headers "X-Host: one";
add_header X-Server one;
if ($http_x_bad) { return 403; }
rewrite ^/old/(.*)$ /app/$1 last;
rewrite ^/to-exact$ /exact break;
location = /exact { return 200 "exact"; }
location /admin { deny all; }
location /admin/open/ { location /admin/open/x { return 200 "nested"; } }
location ^~ /static { return 200 "static"; }
location ~ ^/users/(?<name>[a-z]+)\.php$ { return 200 "php $name"; }
location ~* \.JPG$ { return 200 "image"; }
location @named { return 200 "named"; }
location /empty { add_header X-Location empty; }
location /inside { internal; }
location /second { proxy_set_header X-Set "by $host"; proxy_pass http://two; }
location /spelled { proxy_pass http://two.a.svc.cluster.local:80; }
location /elsewhere { proxy_pass http://one.b.svc; }
location /outside { proxy_pass http://outside.example; }
location /unknown { auth_request /login; }
location /again { rewrite ^/again/(.*)$ /static/$1 last; }
`

// TestServerSnippet checks the locations of a server-snippet, and the steps and headers that apply to all paths of the
// host in its namespace.
func TestServerSnippet(t *testing.T) {
	ip, port := backend(t, "two")
	in := start(t, rivals(t)+allowingSnippets()+tenant("a", 0, service("two", port, ip))+tenant("a", 1,
		annotate(rule("main", "shop.example", "Prefix", "/app", "one"), "server-snippet", servingPaths,
			"server-alias", "alias.example"),
		annotate(rule("wild", "*.wild.example", "Prefix", "/", "one"), "server-snippet", servingPaths))+
		tenant("a", 2, rule("root", "shop.example", "Prefix", "/", "one"),
			rule("exact", "shop.example", "Exact", "/admin/exact", "one"))+
		tenant("b", 3, rule("other", "shop.example", "Prefix", "/b", "one")), "configmap default/global")
	cases := []struct {
		path   string
		status int
		body   string
	}{
		{"/app", 200, "A /app"}, {"/x", 200, "A /x"}, {"/exact", 200, "exact"}, {"/exact/", 200, "A /exact/"},
		{"/admin", 403, ""}, {"/administrator", 403, ""}, {"/admin/x", 403, ""}, {"/Admin", 200, "A /Admin"},
		{"/admin/open/y", 404, ""}, {"/admin/open/x", 200, "nested"}, {"/static/a.jpg", 200, "static"},
		{"/users/bob.php", 200, "php bob"}, {"/users/bob.PHP", 200, "A /users/bob.PHP"}, {"/app/a.jpg", 200, "image"},
		{"/empty", 404, ""}, {"/inside", 404, ""}, {"/second/x", 200, "two /second/x"},
		{"/spelled", 200, "two /spelled"}, {"/elsewhere", 503, ""}, {"/outside", 503, ""}, {"/unknown", 503, ""},
		{"/old/x", 200, "A /app/x"}, {"/to-exact", 200, "exact"}, {"/again/x", 200, "static"},
	}
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, host := range []string{"shop.example", "alias.example", "x.wild.example"} {
			for _, c := range cases {
				got := in.get(host, c.path)
				if got.status != c.status || c.body != "" && got.body != c.body {
					t.Errorf("%s%s is %d %q, want %d %q", host, c.path, got.status, got.body, c.status, c.body)
				}
			}
			for _, path := range []string{"/app", "/exact", "/second", "/x"} {
				if got := in.get(host, path); got.header.Get("X-Host") != "one" || got.header.Get("X-Server") != "one" {
					t.Errorf("%s%s lacks a header of the server: %v", host, path, got.header)
				}
				if got := in.fetch(in.client, in.origin(host)+path, "X-Bad: 1"); got.status != http.StatusForbidden {
					t.Errorf("%s%s with X-Bad is %d", host, path, got.status)
				}
			}
		}
		for path, want := range map[string]string{"/b": "B /b", "/b/x.jpg": "B /b/x.jpg"} {
			got := in.fetch(in.client, in.origin("shop.example")+path, "X-Bad: 1")
			if got.status != 200 || got.body != want || got.header.Get("X-Host") != "" {
				t.Errorf("%s of another namespace is %d %q", path, got.status, got.body)
			}
		}
	})
}

// TestServerSnippetPaths checks that no spelling of a path passes a location that denies it.
func TestServerSnippetPaths(t *testing.T) {
	in := start(t, rivals(t)+allowingSnippets()+tenant("a", 1, annotate(rule("main", "h.example", "Prefix", "/", "one"),
		"server-snippet", "location /admin { deny all; }")), "configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for path, want := range map[string]int{
			"/app": 200, "/app/a%2Fb": 200, "//admin": 403, "/x/../admin": 403, "/%61dmin": 403, "/app/..%2fadmin": 403,
			"/admin/..%2fapp": 400, "/app/..;/admin": 400, "/app/..%3b/admin": 400, "/app/..%5cadmin": 400,
			"/app/%252e%252e/admin": 400, "/admin//../app": 400,
		} {
			if got := in.get("h.example", path); got.status != want {
				t.Errorf("%s is %d, want %d", path, got.status, want)
			}
		}
	})
}

// TestServerSnippetsOfSeveral checks which of several server-snippets applies to a host.
func TestServerSnippetsOfSeveral(t *testing.T) {
	const first, second = `add_header X-Snippet 1; location /l { return 200 first; }`, `location /l { return 200 2; }`
	in := start(t, rivals(t)+allowingSnippets()+
		tenant("a", 1, annotate(rule("first", "h.example", "Prefix", "/1", "one"), "server-snippet", first))+
		tenant("a", 2, annotate(rule("second", "h.example", "Prefix", "/2", "one"), "server-snippet", second),
			rule("replaced", "h.example", "Prefix", "/l", "one"))+
		tenant("b", 3, annotate(rule("foreign", "h.example", "Prefix", "/b", "one"), "server-snippet",
			"add_header X-Snippet b;"))+
		tenant("b", 4, annotate(rule("guarding", "h.example", "Prefix", "/g", "one"), "server-snippet",
			"location /g/x { deny all; }"))+
		tenant("a", 5, rule("broken", "broken.example", "Prefix", "/", "one"))+
		tenant("a", 6, annotate(rule("breaking", "broken.example", "Prefix", "/x", "one"), "server-snippet",
			"location /x {"))+
		tenant("b", 7, rule("beside", "broken.example", "Prefix", "/b", "one")), "configmap default/global")
	in.expect("h.example", "/1", 200, "A /1")
	in.expect("h.example", "/2", 200, "A /2")
	in.expect("h.example", "/l", 200, "first")
	in.expect("h.example", "/b", 200, "B /b")
	in.expect("h.example", "/g", 503, "")
	if got := in.get("h.example", "/2").header.Get("X-Snippet"); got != "1" {
		t.Errorf("X-Snippet is %q", got)
	}
	if got := in.get("h.example", "/b").header.Get("X-Snippet"); got != "" {
		t.Errorf("X-Snippet of another namespace is %q", got)
	}
	for _, path := range []string{"/", "/x", "/x/y"} {
		in.expect("broken.example", path, 503, "")
	}
	in.expect("broken.example", "/b", 200, "B /b")
	in.expectConflict("Ingress/a/second", "Ingress/a/first")
	in.expectConflict("Ingress/b/foreign", "Ingress/a/first")
	in.awaitVerdict("Ingress/a/replaced", "PathConflict",
		"the location in line 1 of the server-snippet of Ingress/a/first")
	in.expectConflict("Ingress/b/guarding", "Ingress/a/first")
}

// TestServerSnippetOfTheConfigMap checks that the key applies to all hosts and namespaces.
func TestServerSnippetOfTheConfigMap(t *testing.T) {
	in := start(t, rivals(t)+allowingSnippets(
		`server-snippet: "if ($http_x_bad) { return 403; } location ~ /\\.git { deny all; } location = /own { }"`)+
		tenant("a", 1, annotate(rule("main", "h.example", "Prefix", "/app", "one"), "server-snippet",
			"location = /own { return 200 own; } location = /hi { return 200 hi; }"))+
		tenant("a", 2, annotate(rule("root", "root.example", "Prefix", "/app", "one"), "app-root", "/app",
			"server-snippet", "if ($http_x_root) { return 404; }"))+
		tenant("a", 2, annotate(rule("regex", "regex.example", "ImplementationSpecific", "/(.*)", "one"), "use-regex",
			"true", "server-snippet", "location /never { deny all; } location ~ ^/first { return 200 first; }"))+
		tenant("b", 3, rule("other", "h.example", "Prefix", "/b", "one"), only("default", "one")),
		"configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for path, want := range map[string]int{"/app": 200, "/b": 200, "/app/.git/x": 403, "/b/.git": 403, "/hi": 200,
			"/own": 503} {
			if got := in.get("h.example", path); got.status != want {
				t.Errorf("%s is %d, want %d", path, got.status, want)
			}
		}
		for _, url := range [][2]string{{"h.example", "/app"}, {"h.example", "/b"}, {"h.example", "/hi"},
			{"rest.example", "/"}, {"root.example", "/"}, {"root.example", "/app"}} {
			if got := in.fetch(in.client, in.origin(url[0])+url[1], "X-Bad: 1"); got.status != 403 {
				t.Errorf("%s with X-Bad is %d", url, got.status)
			}
		}
		for _, c := range []struct {
			host, path, header string
			status             int
		}{
			{"root.example", "/", "X-Root", 404}, {"root.example", "/", "X-A", 302},
			{"rest.example", "/.git", "X-A", 403},
			{"regex.example", "/never", "X-A", 200}, {"regex.example", "/first", "X-A", 200},
			{"regex.example", "/.git", "X-A", 200},
		} {
			if got := in.fetch(in.client, in.origin(c.host)+c.path, c.header+": 1"); got.status != c.status {
				t.Errorf("%s%s is %d, want %d", c.host, c.path, got.status, c.status)
			}
		}
	})
}

// TestServerSnippetRefused checks that the locations of the ConfigMap stay closed for all namespaces if the snippet of
// the namespace that owns the host is refused.
func TestServerSnippetRefused(t *testing.T) {
	in := start(t, rivals(t)+allowingSnippets(`server-snippet: "location ~ /\\.git { deny all; }"`)+
		tenant("a", 1, annotate(rule("main", "h.example", "Prefix", "/app", "one"), "server-snippet", "location /x {"))+
		tenant("b", 3, rule("other", "h.example", "Prefix", "/b", "one")), "configmap default/global")
	in.expect("h.example", "/app", 503, "")
	in.expect("h.example", "/b", 200, "B /b")
	in.expect("h.example", "/b/.git", 503, "")
}
