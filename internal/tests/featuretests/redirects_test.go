package featuretests

import (
	"net/http"
	"strings"
	"testing"
)

// TestRedirects checks that the redirect uses the annotation's URL and no part of the request, and that it precedes
// the redirect to HTTPS and all access checks. It does not need an endpoint.
func TestRedirects(t *testing.T) {
	in := start(t, class+service("none", "80")+
		annotated("moved", "moved.example", "none", "permanent-redirect", "https://www.example.com/new?a=b",
			"force-ssl-redirect", "true",
			"allowlist-source-range", "192.0.2.1")+
		annotated("code", "code.example", "none", "permanent-redirect", "http://www.example.com",
			"permanent-redirect-code", "308")+
		annotated("soon", "soon.example", "none", "permanent-redirect", "https://a.example", "temporal-redirect",
			"https://b.example/x")+
		annotated("later", "later.example", "none", "temporal-redirect", "https://c.example",
			"temporal-redirect-code", "307"))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct {
			host, location string
			status         int
		}{
			{"moved.example", "https://www.example.com/new?a=b", http.StatusMovedPermanently},
			{"code.example", "http://www.example.com", http.StatusPermanentRedirect},
			{"soon.example", "https://b.example/x", http.StatusFound},
			{"later.example", "https://c.example", http.StatusTemporaryRedirect},
		} {
			got := in.sendBy(in.client, in.origin(c.host)+"/some/path?q=1", http.MethodPost, strings.NewReader("body"))
			if got.status != c.status || got.header.Get("Location") != c.location {
				t.Errorf("%s: %d %q, want %d %q", c.host, got.status, got.header.Get("Location"), c.status, c.location)
			}
		}
	})
}

// TestRewriteToURL checks that a rewrite-target that is a URL causes a redirect, with groups of the path and variables
// expanded, before the redirect to HTTPS. Client input is escaped, and never becomes part of the host.
func TestRewriteToURL(t *testing.T) {
	ip, port := backend(t, "one")
	rewriting := func(name, path, target string) string {
		return annotate(rule(name, "a.example", "ImplementationSpecific", path, "one"), "rewrite-target", target,
			"force-ssl-redirect", "true", "allowlist-source-range", "192.0.2.1")
	}
	in := start(t, class+service("one", port, ip)+
		rewriting("old", "/old/(.*)", "https://new.example/$1")+
		rewriting("behind", "/behind(.*)", "https://new.example$1")+
		rewriting("whole", "/whole", "https://new.example$request_uri"))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for path, location := range map[string]string{
			"/OLD/a%20%C3%A9%2fb?x=1": "https://new.example/a%20%C3%A9/b?x=1",
			"/behind/a":               "https://new.example/a",
			"/whole/a%20b?x=1":        "https://new.example/whole/a%20b?x=1",
		} {
			in.leads(t, "a.example", path, http.StatusFound, location)
		}
		in.expect("a.example", "/behind.evil.example", http.StatusBadRequest, "")
	})
}
