package featuretests

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
)

// TestHeaderNames checks that enable-underscores-in-headers and ignore-invalid-headers forward headers, with each
// version of HTTP and on open connections, but never a header that an endpoint could confuse with a header that the
// controller sets.
func TestHeaderNames(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		own := map[string]bool{}
		for _, values := range r.Header {
			own[values[0]] = true
		}
		for _, name := range []string{"under", "dot", "spoofed", "twin"} {
			if own[name] {
				fmt.Fprint(w, name, " ")
			}
		}
	})
	with := func(entries ...string) string {
		return class + service("one", port, ip) + rule("a", "a.example", "Prefix", "/", "one") + headerMaps +
			global(append(entries, "proxy-set-headers: default/requests")...)
	}
	sent := []string{
		"X_Under: under", "X.Dot_'~: dot", "X_Forwarded_For: spoofed", "X.Real_IP: spoofed",
		"ssl_client_verify: spoofed", "Content.Type: spoofed",
		"Transfer-Encoding_: spoofed", "Authorization.: spoofed", "X_Start: twin", "x.start: twin",
	}
	in := start(t, with(), "configmap default/global")
	for _, c := range []struct {
		entries []string
		want    string
	}{
		{nil, ""},
		{[]string{`enable-underscores-in-headers: "true"`}, "under "},
		{[]string{`ignore-invalid-headers: "false"`}, "under dot "},
		{[]string{`ignore-invalid-headers: "false"`, `enable-underscores-in-headers: "true"`}, "under dot "},
		{[]string{`ignore-invalid-headers: "true"`}, ""},
	} {
		if c.entries != nil {
			in.changes(with(c.entries...))
		}
		in.byEachVersion(t, func(t *testing.T, in *ingress) {
			if got := in.send(http.MethodGet, "/", nil, sent...).body; got != c.want {
				t.Errorf("with %q the endpoint gets %q, want %q", c.entries, got, c.want)
			}
		})
	}
}

// TestHeaderNamesOfTheService checks that a client cannot use another spelling of a header that only the external
// authentication service may set.
func TestHeaderNamesOfTheService(t *testing.T) {
	in, service := externalAuth(t, map[string][]string{"a": {
		"auth-url", "AUTH/", "auth-response-headers", "X-User",
	}}, `ignore-invalid-headers: "false"`)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		service.answers(letIn)
		in.sendBy(in.client, in.origin("a.example")+"/", http.MethodGet, nil, "X_User: eve",
			"x.user: eve", "X_Under: 1",
			"X_Sent_From: mallory", "X_Auth.Request_Redirect: mallory")
		asked, seen := service.taken()
		if len(asked) != 1 || len(seen) != 1 {
			t.Fatalf("asked %d times, and the backend got %d", len(asked), len(seen))
		}
		for _, values := range asked[0].Header {
			if slices.Contains(values, "mallory") {
				t.Errorf("the service gets %q", asked[0].Header)
			}
		}
		header := seen[0].Header
		for _, values := range header {
			if slices.Contains(values, "eve") {
				t.Errorf("the backend gets %q", header)
			}
		}
		if header.Get("X-User") != "alice" || header.Get("X_Under") != "1" {
			t.Errorf("the backend gets %q", slices.Sorted(maps.Keys(header)))
		}
	})
}
