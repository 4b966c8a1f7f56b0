package featuretests

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// leads checks the status of a response and the URL to which a client is redirected.
func (in *ingress) leads(t testing.TB, host, path string, status int, location string) {
	t.Helper()
	got := in.sendBy(in.client, in.origin(host)+path, http.MethodGet, io.Reader(http.NoBody))
	if got.status != status || got.header.Get("Location") != location {
		t.Errorf("%s%s: %d %q, want %d %q", host, path, got.status, got.header.Get("Location"), status, location)
	}
}

// TestAppRoot checks that "/" redirects to the annotation's path on the same host, even if the paths of the host are
// regular expressions or do not include "/". Other paths do not change, and the redirect to HTTPS comes first.
func TestAppRoot(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("one", port, ip)+
		annotate(rule("app", "a.example", "Prefix", "/app", "one"), "app-root", "/app/start?page=1")+
		annotate(rule("exact", "b.example", "Exact", "/", "one"), "app-root", "/app", "relative-redirects", "true")+
		annotate(rule("regex", "c.example", "ImplementationSpecific", "/x(.*)|/", "one"), "app-root", "/x",
			"use-regex", "true")+
		annotate(rule("secure", "d.example", "Prefix", "/", "one"), "app-root", "/app", "force-ssl-redirect", "true")+
		annotate(rule("closed", "e.example", "Prefix", "/app", "one"), "app-root", "/app",
			"allowlist-source-range", "nowhere"))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		origin := in.origin("a.example")
		for _, path := range []string{"", "/", "/?q=1", "//"} {
			in.leads(t, "a.example", path, http.StatusFound, origin+"/app/start?page=1")
		}
		in.leads(t, "b.example", "/", http.StatusFound, "/app")
		in.leads(t, "c.example", "/", http.StatusFound, in.origin("c.example")+"/x")
		in.expect("a.example", "/app/start", http.StatusOK, "one /app/start")
		in.expect("a.example", "/other", http.StatusNotFound, "")
		in.expect("c.example", "/x", http.StatusOK, "one /x")
		in.expect("e.example", "/", http.StatusServiceUnavailable, "")
		status, location := http.StatusPermanentRedirect, "https://d.example"
		if strings.HasPrefix(origin, "https://") {
			status, location = http.StatusFound, in.origin("d.example")+"/app"
		}
		in.leads(t, "d.example", "/", status, location)
	})
}

// TestAppRootOfAll checks that the ConfigMap sets the redirect of "/" for Ingresses without the annotation.
func TestAppRootOfAll(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+
		annotate(rule("own", "own.example", "Prefix", "/", "one"), "app-root", "/own")+
		global("app-root: /all"), "configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		in.leads(t, "a.example", "/", http.StatusFound, in.origin("a.example")+"/all")
		in.leads(t, "own.example", "/", http.StatusFound, in.origin("own.example")+"/own")
		in.expect("a.example", "/other", http.StatusOK, "one /other")
	})
}

// TestUseRegex checks that paths are case-insensitive regular expressions, the longest first, and that this includes
// the other paths of the namespace on the host. Other hosts do not change.
func TestUseRegex(t *testing.T) {
	one, port1 := backend(t, "one")
	two, port2 := backend(t, "two")
	in := start(t, class+service("one", port1, one)+service("two", port2, two)+
		annotate(rule("regex", "a.example", "ImplementationSpecific", "/api/v[0-9]+$", "one"), "use-regex", "true")+
		rule("plain", "a.example", "Exact", "/api", "two")+rule("other", "b.example", "Exact", "/api", "two"))
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		in.expect("a.example", "/api/v12", http.StatusOK, "one /api/v12")
		in.expect("a.example", "/API/V1", http.StatusOK, "one /API/V1")
		in.expect("a.example", "/api/v12/x", http.StatusOK, "two /api/v12/x")
		in.expect("a.example", "/apis", http.StatusOK, "two /apis")
		in.expect("a.example", "/x/api", http.StatusNotFound, "")
		in.expect("b.example", "/api", http.StatusOK, "two /api")
		in.expect("b.example", "/apis", http.StatusNotFound, "")
	})
}
