package featuretests

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestEscapesPass checks that %2F and %23 in a path reach the endpoint unchanged if no guard is involved.
func TestEscapesPass(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) })
	in := start(t, class+service("one", port, ip)+rule("all", "all.example", "Prefix", "/", "one")+
		rule("api", "api.example", "Prefix", "/api", "one")+
		// The guard of another path does not apply.
		rule("beside", "guarded.example", "Prefix", "/api", "one")+
		strings.Replace(annotated("guarded", "guarded.example", "one", "whitelist-source-range", "192.0.2.0/24"),
			"path: /,", "path: /admin,", 1))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, path := range []string{
			"/api/v4/projects/group%2Fproject/repository/files/docs%2Fa.md/raw", // GitLab
			"/api/_matrix/client/v3/rooms/%23room:a.example/state",              // Matrix
			"/api/dav/files/me/C%23%20notes.md",                                 // Nextcloud
			"/api/hosting/wopi/files/1%2f2?access_token=a%2Fb%23c",              // Collabora
			"/api/x%2F%23%2fy%3Fz",
		} {
			for _, host := range []string{"all.example", "api.example", "guarded.example"} {
				q := question{host: host, path: path}
				if got := in.exchange(q.usual()); got.String() != "200 "+path {
					t.Errorf("%s%s: the endpoint gets %q", host, path, got)
				}
			}
		}
	})
	q := question{host: "guarded.example", path: "/admin/x"}
	if got := in.exchange(q.usual()); got.status != http.StatusForbidden {
		t.Errorf("the guard answers %q", got)
	}
}

// TestUnderscoresInHeadersPass checks that header names with underscores reach the endpoint only with the key
// enable-underscores-in-headers.
func TestUnderscoresInHeadersPass(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		var got []string
		for name, values := range r.Header {
			if strings.Contains(name, "_") {
				got = append(got, strings.ToLower(name)+": "+strings.Join(values, ","))
			}
		}
		slices.Sort(got)
		fmt.Fprint(w, strings.Join(got, "; "))
	})
	sent := []string{"Sentry_Key: a", "fastly_ff: b", "X_Request_Trace_: c", "_d: d", "x_twice: e", "x_twice: f"}
	for key, want := range map[string]string{
		"true":  "_d: d; fastly_ff: b; sentry_key: a; x_request_trace_: c; x_twice: e,f",
		"false": "",
	} {
		in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+
			global(`enable-underscores-in-headers: "`+key+`"`), "configmap default/global")
		in.byEachVersion(t, func(t *testing.T, in *ingress) {
			q := question{fields: sent}
			if got := in.exchange(q.usual()); got.status != http.StatusOK || got.body != want {
				t.Errorf("with the key %s the endpoint gets %q, want %q", key, got, want)
			}
		})
		in.stop()
	}
}
