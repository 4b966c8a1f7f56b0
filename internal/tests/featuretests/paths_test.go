package featuretests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/message"
)

// spellings are paths with the result on two hosts where /admin requires a password. The first host also has /public,
// the second one a route for all other paths. All routes lead to one endpoint. Served paths are forwarded unchanged.
var spellings = []struct{ path, public, all string }{
	// Honest requests: images in registries, keys in object stores, matrix parameters, and characters that browsers
	// escape.
	{"/public/library%2Fnginx/tags", "200", "200"},
	{"/public/bucket//key", "200", "200"},
	{"/public/report;v=1", "200", "200"},
	{"/public/report%3Bv=1", "200", "200"},
	{"/public/100%25", "200", "200"},
	{"/public/100%2525", "200", "200"},
	{"/public/a%20b%C3%A9", "200", "200"},
	{"/public/.well-known/...", "200", "200"},
	{"/public/a%2Fb//c;v=1", "200", "200"},
	{"/public/x/../y", "200", "200"},
	{"/public/windows%5Cpath", "200", "200"},
	// The guard applies to them, whatever the endpoint makes of them.
	{"//admin/x", "401", "401"},
	{"/./admin/x", "401", "401"},
	{"/x/../admin/y", "401", "401"},
	{"/%61dmin/x", "401", "401"},
	{"/admin%2fx", "401", "401"},
	{"/public/..%2fadmin/x", "401", "401"},
	{"/public/../admin/x", "401", "401"},
	{"/public/%2e%2e/admin/x", "401", "401"},
	{"/public%23/../admin/x", "401", "401"},
	// Routed to an open path, but read as /admin by an endpoint that does not resolve dot segments, or does not decode.
	{"/admin/..%2fpublic/x", "400", "400"},
	{"/admin/../public/x", "400", "400"},
	{"/admin/%2e%2e/public/x", "400", "400"},
	{"/admin/%2e%2e%2fpublic/x", "400", "400"},
	{"/admin/..", "404", "400"},
	{"/admin%2f..%2fpublic/x", "400", "400"},
	// Read as /admin by an endpoint that removes path parameters, as Tomcat, Jetty and Spring do.
	{"/public/..;/admin/y", "400", "400"},
	{"/public/..;a=b/admin/y", "400", "400"},
	{"/public/..%3b/admin/y", "400", "400"},
	{"/public/..;%2fadmin/y", "400", "400"},
	{"/admin;a=b/x", "404", "400"},
	{"/public/%2e%2e;/admin/y", "400", "400"},
	// Read as /admin by an endpoint for which a backslash is a slash.
	{`/public/..\admin/x`, "400", "400"},
	{"/public/..%5cadmin/x", "400", "400"},
	{"/public/%2e%2e%5cadmin/x", "400", "400"},
	// Read as /admin by an endpoint that decodes twice.
	{"/public/%252e%252e/admin/x", "400", "400"},
	{"/public/..%252fadmin/x", "400", "400"},
	{"/public/..%255cadmin/x", "400", "400"},
	{"/%2561dmin/x", "404", "400"},
	// Read as /admin by an endpoint that merges slashes, or does not, before it resolves dot segments.
	{"/admin//../public/x", "400", "400"},
	{"/public//../admin/x", "401", "401"},
	// These leave the path of the route: no client of the first host may reach /internal.
	{"/public/..;/internal", "400", "200"},
	{"/public/..%5cinternal", "400", "200"},
	{"/public/..%2finternal", "404", "200"},
	{"/public/x%00/admin", "400", "400"},
	// These have more readings than an honest path, and are longer than the name of an object.
	{"/public/a;b%3bc%2fd%5ce//f/../%252e/x%255c", "400", "400"},
	{"/public//" + strings.Repeat("x", 5000), "400", "400"},
}

// TestStrictPaths checks that the option rejects ambiguous paths on all hosts, and no other paths. A reload of the
// Caddyfile applies it.
func TestStrictPaths(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) })
	in := start(t, class+service("one", port, ip)+rule("open", "a.example", "Prefix", "/", "one"))
	in.expect("a.example", "/public/a%2Fb", http.StatusOK, "/public/a%2Fb")
	in.load("manifests " + in.folder + "\nstrict_paths")
	in.becomes("a.example", "/public/a%2Fb", http.StatusBadRequest, "")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range spellings {
			want := http.StatusOK
			if message.Ambiguous(c.path) || strings.Contains(c.path, "%00") {
				want = http.StatusBadRequest
			}
			q := question{path: c.path}
			if got := in.exchange(q.usual()); got.status != want {
				t.Errorf("%s: got %.80q, want %d", c.path, got, want)
			}
		}
	})
	in.load("manifests " + in.folder)
	in.becomes("a.example", "/public/a%2Fb", http.StatusOK, "/public/a%2Fb")
}

// TestPathSpellings checks how each spelling of a path is handled in each version of HTTP, and that a host with one
// route serves them all.
func TestPathSpellings(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) })
	guarded := func(name, host string) string {
		return annotate(rule(name, host, "Prefix", "/admin", "one"), "k8singress.io/chains", "staff")
	}
	in := start(t, class+service("one", port, ip)+rule("public", "a.example", "Prefix", "/public", "one")+
		guarded("admin", "a.example")+
		rule("all", "b.example", "Prefix", "/", "one")+guarded("admin-too", "b.example")+rule("open", "c.example",
		"Prefix", "/", "one"), staffOne)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		check := func(host, path, want string) {
			t.Helper()
			q := question{host: host, path: path}
			got := in.exchange(q.usual()).String()
			if want == "200" {
				// Characters that are not allowed in a path are escaped.
				want += " " + strings.ReplaceAll(path, `\`, "%5C")
			}
			if got != want && !strings.HasPrefix(got, want+" ") {
				t.Errorf("%s%s: got %.80q, want %.80q", host, path, got, want)
			}
		}
		for _, c := range spellings {
			check("a.example", c.path, c.public)
			check("b.example", c.path, c.all)
			if c.path != "/public/x%00/admin" {
				check("c.example", c.path, "200")
			}
		}
	})
}
