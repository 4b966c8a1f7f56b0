package featuretests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

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

// TestSnippetRequestsOfTenants checks that an authentication service and a backend get the same request from a client
// that sends it to their path, and from a client that the snippet of another namespace leads to this path. Otherwise
// the snippet could mislead a service that decides by the path or by the address of the client.
func TestSnippetRequestsOfTenants(t *testing.T) {
	in, a := externalAuth(t, map[string][]string{"in": {"auth-url", "AUTH/$escaped_request_uri", "auth-method", "GET"}},
		"annotations-risk-level: Critical", `allow-snippet-annotations: "true"`, `use-forwarded-headers: "true"`,
		`compute-full-forwarded-for: "true"`)
	const forge = `more_set_input_headers "X-Forwarded-For: 10.6.6.6" "X-Real-IP: 10.6.6.6" "X-Forwarded-Host: evil"
		"X-Original-URI: /public" "X-Auth-Request-Redirect: /public" "X-Team: admin" "User-Agent: forged";
		more_clear_input_headers "X-Sent*"; `
	location := func(path, snippet string) string {
		return annotate(rule(path[1:], "in.example", "Prefix", path, "one"), "configuration-snippet", forge+snippet)
	}
	ip, port := backend(t, "A")
	in.write("a.yaml", tenant("a", 1, service("one", port, ip),
		location("/rewritten", "rewrite ^/rewritten/(.*) /b%20/$1?own=1 last;"),
		location("/page", "error_page 404 = /b/page?own=1; return 404;"),
		location("/twice", "rewrite ^/twice/(.*) /again/$1 last;"),
		location("/again", "rewrite ^/again/(.*) /b/$1 last;"),
		location("/own", ""),
	))
	in.becomes("in.example", "/own", http.StatusOK, "A /own")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		ask := func(path string) (all [2]string) {
			a.answers(letIn)
			got := in.fetch(in.client, in.origin("in.example")+path, "X-Forwarded-For: 192.0.2.1, 192.0.2.2",
				"X-Request-Id: one", "X-Sent: by the client", "X-Team: guests", "User-Agent: test", "Range: bytes=0-")
			asked, seen := a.taken()
			if got.status != http.StatusOK || len(asked) != 1 || len(seen) != 1 {
				t.Fatalf("%s: %+v, asked %d times, and the backend got %d", path, got, len(asked), len(seen))
			}
			for i, r := range []*http.Request{asked[0], seen[0]} {
				all[i] = fmt.Sprint(r.RequestURI, r.Header)
			}
			return all
		}
		for path, direct := range map[string]string{
			"/rewritten/x?y=1": "/b%2520/x?own=1&y=1", "/page": "/b/page?own=1", "/twice/x?y=1": "/b/x?y=1",
		} {
			want, got := ask(direct), ask(path)
			for i := range want {
				if path == "/page" {
					// A page is not requested with fields that refer to the original resource.
					want[i] = strings.Replace(want[i], " Range:[bytes=0-]", "", 1)
				}
				if got[i] != want[i] {
					t.Errorf("%s leads to\n%q, and\n%s to\n%q", path, got[i], direct, want[i])
				}
			}
		}
	})
}

// TestServerVariablesOfTenants checks that a path gets 503 if its snippet reads a variable that its server-snippet
// sets, on a host to which another server-snippet applies: the snippet may decide about access by the variable.
// Variables of the ConfigMap's server-snippet are set on all hosts.
func TestServerVariablesOfTenants(t *testing.T) {
	location := func(name, server string) string {
		return annotate(rule(name, "h.example", "Prefix", "/"+name, "one"), "server-snippet", server,
			"configuration-snippet", "if ($denied) { return 403; }")
	}
	const denies = "set $denied 0; if ($http_x_key != secret) { set $denied 1; }"
	in := start(t, rivals(t)+
		allowingSnippets(`server-snippet: "set $all yes;"`, `location-snippet: "add_header X-All $all;"`)+
		tenant("a", 1, location("first", denies))+
		tenant("a", 2, location("same", denies), location("more", denies+" set $more 1;"))+
		tenant("a", 3, annotate(rule("other", "h.example", "Prefix", "/other", "one"),
			"server-snippet", "set $other 1;", "configuration-snippet", "if ($other) { return 403; }"))+
		tenant("b", 4, location("foreign", denies), rule("plain", "h.example", "Prefix", "/plain", "one")),
		"configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for path, want := range map[string][2]int{
			"/first": {403, 200}, "/same": {403, 200}, "/more": {403, 200}, "/other": {503, 503},
			"/foreign": {503, 503}, "/plain": {200, 200},
		} {
			for i, key := range []string{"X-Key: none", "X-Key: secret"} {
				got := in.fetch(in.client, in.origin("h.example")+path, key)
				if got.status != want[i] || got.status == 200 && got.header.Get("X-All") != "yes" {
					t.Errorf("%s with %s is %d with X-All %q, want %d", path, key, got.status,
						got.header.Get("X-All"), want[i])
				}
			}
		}
	})
	in.expectConflict("Ingress/a/other", "the server-snippet that sets $other does not apply to the host h.example")
	in.expectConflict("Ingress/b/foreign", "the server-snippet that sets $denied does not apply to the host h.example")
}
