package featuretests

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// authSnippetKeys are the keys of the ConfigMap that allow auth-snippet, and the keys of global authentication.
var authSnippetKeys = []string{
	"annotations-risk-level: Critical", `allow-snippet-annotations: "true"`, "global-auth-url: AUTH/global",
	"global-auth-snippet: if ($http_x_guest) { return 200; } proxy_set_header X-Global $host;",
}

const authSnippet = `
	set $team none;
	if ($http_x_team ~ ^([a-z]+)$) { set $team $1; }
	if ($request_method = OPTIONS) { return 204 ignored; }
	if ($http_x_want = login) { return 401; }
	if ($http_x_want = blocked) { return 403; }
	if ($http_x_want = redirect) { return 302 https://evil.example/; }
	proxy_set_header X-Forwarded-Host $http_host;
	proxy_set_header X-Forwarded-Method $request_method;
	proxy_set_header X-Sent-From "";
	proxy_set_header X-Team $team;
	more_clear_input_headers Cookie;`

// asking sends a request. It returns the response, the requests that the authentication service got, and the requests
// that the backend got.
type asking = func(method string, headers ...string) (got answer, asked, seen []*http.Request)

// askWithSnippet starts a test for each kind of client, with an Ingress with auth-snippet. The function ask sends a
// request to this Ingress.
func askWithSnippet(t *testing.T, test func(t *testing.T, in *ingress, ask asking)) {
	t.Helper()
	in, a := externalAuth(t, map[string][]string{"in": {
		"auth-url", "AUTH/check", "auth-response-headers", "X-User", "auth-signin", "https://login.example/?rd=a",
		"auth-snippet", authSnippet,
	}}, authSnippetKeys...)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		test(t, in, func(method string, headers ...string) (got answer, asked, seen []*http.Request) {
			a.answers(letIn)
			got = in.sendBy(in.client, in.origin("in.example")+"/", method, nil,
				append(headers, "X-User: mallory", "Cookie: a=b")...)
			asked, seen = a.taken()
			return got, asked, seen
		})
	})
}

// TestAuthSnippet checks that a snippet changes the request to the authentication service, and not the request to the
// backend.
func TestAuthSnippet(t *testing.T) {
	askWithSnippet(t, func(t *testing.T, in *ingress, ask asking) {
		got, asked, seen := ask(http.MethodPut, "X-Team: blue", "X-Forwarded-Method: GET", "X-Forwarded-Host: evil")
		if got.status != http.StatusOK || len(asked) != 1 || len(seen) != 1 {
			t.Fatalf("%+v, asked %d times, and the backend got %d", got, len(asked), len(seen))
		}
		for name, want := range map[string]string{
			"X-Forwarded-Method": "PUT", "X-Sent-From": "", "X-Team": "blue", "Cookie": "", "X-Original-Method": "PUT",
			"X-Forwarded-Host": strings.TrimPrefix(in.origin("in.example"), in.either("http", "https")+"://"),
		} {
			if found := strings.Join(asked[0].Header[name], "|"); found != want {
				t.Errorf("the service gets %s: %q, want %q", name, found, want)
			}
		}
		if h := seen[0].Header; h.Get("X-User") != "alice" || h.Get("X-Forwarded-Method") != "GET" ||
			h.Get("Cookie") != "a=b" {
			t.Errorf("the backend gets %v", h)
		}
		_, asked, _ = ask(http.MethodGet, "X-Team: Blue")
		if len(asked) != 1 || asked[0].Header.Get("X-Team") != "none" {
			t.Errorf("the service gets %v", asked)
		}
	})
}

// TestAuthSnippetResponds checks that a snippet can respond in place of the authentication service.
func TestAuthSnippetResponds(t *testing.T) {
	askWithSnippet(t, func(t *testing.T, _ *ingress, ask asking) {
		for want, status := range map[string]int{"login": 302, "blocked": 403, "redirect": 500} {
			got, asked, seen := ask(http.MethodGet, "X-Want: "+want)
			if got.status != status || len(asked)+len(seen) != 0 ||
				got.header.Get("Location") == "https://evil.example/" {
				t.Errorf("%s: %+v, and %d requests", want, got, len(asked)+len(seen))
			}
		}
		got, asked, seen := ask(http.MethodOptions)
		if got.status != http.StatusOK || len(asked) != 0 || len(seen) != 1 || seen[0].Header.Get("X-User") != "" {
			t.Errorf("without the service: %+v, %d questions, %d requests", got, len(asked), len(seen))
		}
	})
}

// TestGlobalAuthSnippet checks that global-auth-snippet only applies to requests to global-auth-url, and auth-snippet
// only to requests to auth-url.
func TestGlobalAuthSnippet(t *testing.T) {
	const snippet = "proxy_set_header X-Own $host;"
	in, a := externalAuth(t, map[string][]string{
		"global": {"auth-snippet", snippet}, "own": {"auth-url", "AUTH/own", "auth-snippet", snippet},
		"refused": {"auth-url", "AUTH/own", "auth-snippet", "deny all;"}, "none": {"enable-global-auth", "false"},
	}, authSnippetKeys...)
	for name, want := range map[string]string{
		"global": "200 /global global.example ", "own": "200 /own  own.example", "none": "200", "refused": "503",
	} {
		a.answers(letIn)
		got := strconv.Itoa(in.get(name+".example", "/").status)
		asked, _ := a.taken()
		for _, q := range asked {
			got += fmt.Sprintf(" %s %s %s", q.URL.Path, q.Header.Get("X-Global"), q.Header.Get("X-Own"))
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	a.answers(letIn)
	if got := in.sendBy(in.client, in.origin("global.example"), http.MethodGet, nil, "X-Guest: 1"); got.status != 200 {
		t.Errorf("a guest gets %d", got.status)
	}
	if asked, seen := a.taken(); len(asked) != 0 || len(seen) != 1 {
		t.Errorf("for a guest, the service is asked %d times, and the backend gets %d requests", len(asked), len(seen))
	}
}

// TestAuthSnippetKept checks that requests for which a snippet sets different headers do not share a cached response.
func TestAuthSnippetKept(t *testing.T) {
	in, a := externalAuth(t, map[string][]string{"in": {
		"auth-url", "AUTH", "auth-cache-key", "one", "auth-snippet",
		"if ($http_x_team = red) { return 403; } proxy_set_header X-Team $http_x_team;",
	}}, authSnippetKeys...)
	a.answers(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Team") != "blue" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	for _, c := range []struct {
		team   string
		status int
		asked  int
	}{{"blue", 200, 1}, {"", 401, 2}, {"red", 403, 2}, {"", 401, 2}, {"blue", 200, 2}, {"red", 403, 2}} {
		got := in.sendBy(in.client, in.origin("in.example"), http.MethodGet, nil, "X-Team: "+c.team)
		if asked, _ := a.taken(); got.status != c.status || len(asked) != c.asked {
			t.Errorf("%q gets %d after %d questions, want %d and %d", c.team, got.status, len(asked), c.status, c.asked)
		}
	}
}
