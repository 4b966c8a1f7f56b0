package featuretests

import (
	"net/http"
	"strings"
	"testing"
)

// withPages is a server-snippet with pages of each kind.
const withPages = `
error_page 413 /too-large;
if ($http_x_state = closed) { return 503; }
error_page 503 @maintenance;
location @maintenance { return 200 "back soon"; }
location @login { return 302 /login; }
location /too-large { return 200 "too large"; }
location /page { return 200 "page"; }
location /guarded { deny all; }
location /inside { internal; return 200 "inside"; }
`

// TestSnippetErrorPages checks error pages of snippets beside annotations: which one applies, and that the page meets
// the checks of its own path.
func TestSnippetErrorPages(t *testing.T) {
	appIP, appPort := erring(t)
	pageIP, pagePort := errorPages(t, fine)
	hosted := func(name, path, snippet string, annotations ...string) string {
		return annotate(rule(name, "shop.example", "Prefix", path, "app"),
			append(annotations, "configuration-snippet", snippet)...)
	}
	users := []string{"auth-type", "basic", "auth-secret", "users"}
	in := start(t, class+allowingSnippets()+service("app", appPort, appIP)+service("pages", pagePort, pageIP)+
		service("none", "80")+htpasswd("users", alicesLine)+
		annotate(rule("root", "shop.example", "Prefix", "/", "app"), "server-snippet", withPages,
			"proxy-body-size", "1k")+
		hosted("custom", "/404", "error_page 403 /page; error_page 404 =200 /page; return 404;",
			"custom-http-errors", "403,404,410", "default-backend", "pages")+
		hosted("other", "/410", "error_page 403 /page; return 410;",
			"custom-http-errors", "410", "default-backend", "pages")+
		hosted("login", "/login-needed", "error_page 401 = @login;", users...)+
		hosted("to-guarded", "/to-guarded", "error_page 404 = /guarded; return 404;")+
		hosted("to-inside", "/to-inside", "error_page 404 = /inside; return 404;")+
		hosted("to-users", "/to-users", "error_page 404 = /login-needed; return 404;")+
		annotate(rule("down", "shop.example", "Prefix", "/down", "none"), "configuration-snippet",
			"error_page 503 = /page;")+
		hosted("wrong", "/wrong", "error_page 200 /page;")+
		hosted("missing", "/missing", "error_page 404 @logni; return 404;"), "configmap default/global")
	in.awaitVerdict("Ingress/default/missing", "InvalidPath", "has no location @logni")
	in.awaitVerdict("Ingress/default/missing", "InvalidPath", "@maintenance, @login")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for path, want := range map[string]struct {
			status int
			body   string
		}{
			"/":    {200, "app 200"},
			"/404": {200, "page"}, "/410": {410, "page of 410"}, "/to-guarded": {403, ""},
			"/to-inside": {200, "inside"},
			"/inside":    {404, ""}, "/guarded": {403, ""}, "/to-users": {401, ""}, "/login-needed": {302, ""},
			"/down": {200, "page"}, "/wrong": {503, ""}, "/missing": {500, ""},
		} {
			in.expect("shop.example", path, want.status, want.body)
		}
		got := in.get("shop.example", "/login-needed")
		if got.header.Get("WWW-Authenticate") == "" || !strings.HasSuffix(got.header.Get("Location"), "/login") {
			t.Errorf("without a login, the client gets %v", got.header)
		}
		got = in.fetch(in.client, in.origin("shop.example")+"/404", "X-State: closed")
		if got.status != http.StatusServiceUnavailable || got.body != "back soon" {
			t.Errorf("a closed host responds with %d %q", got.status, got.body)
		}
		got = in.sendBy(in.client, in.origin("shop.example")+"/", http.MethodPost,
			strings.NewReader(strings.Repeat("x", 2<<10)))
		if got.status != http.StatusRequestEntityTooLarge || got.body != "too large" {
			t.Errorf("a large body gets %d %q", got.status, got.body)
		}
	})
}

// TestSnippetErrorPagesOfTenants checks that an error page serves no location of another namespace that clients cannot
// request themselves.
func TestSnippetErrorPagesOfTenants(t *testing.T) {
	leading := func(name, to string) string {
		return annotate(rule(name, "h.example", "Prefix", "/"+name, "one"), "configuration-snippet",
			"error_page 404 = "+to+"; return 404;")
	}
	in := start(t, rivals(t)+allowingSnippets("server-snippet: \"location @all { return 200 all; }\"")+
		tenant("a", 1, annotate(rule("main", "h.example", "Prefix", "/", "one"), "server-snippet",
			"location @own { return 200 own; } location /inside { internal; return 200 inside; }"),
			leading("named-a", "@own"), leading("inside-a", "/inside"), leading("all-a", "@all"))+
		tenant("b", 2, leading("named-b", "@own"), leading("inside-b", "/inside"), leading("all-b", "@all"),
			leading("path-b", "/x")), "configmap default/global")
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/named-a": {200, "own"}, "/inside-a": {200, "inside"}, "/all-a": {200, "all"},
		"/named-b": {500, ""}, "/inside-b": {404, ""}, "/all-b": {200, "all"}, "/path-b": {200, "A /x"},
	} {
		in.expect("h.example", path, want.status, want.body)
	}
}

// TestSnippetErrorPagesOpenNothing checks error pages that pass requests to an endpoint. They must not serve requests
// that get an error because the controller cannot decide about them.
func TestSnippetErrorPagesOpenNothing(t *testing.T) {
	location := func(path string, annotations ...string) string {
		return annotate(rule(path[1:], "h.example", "Prefix", path, "one"), annotations...)
	}
	in := start(t, rivals(t)+allowingSnippets()+tenant("a", 1, annotate(rule("main", "h.example", "Prefix", "/", "one"),
		"server-snippet", `error_page 400 403 503 =200 @open; location @open { proxy_pass http://one; }
location /guarded { auth_request /login; } location /elsewhere { proxy_pass http://one.b; }`),
		location("/users", "auth-type", "basic", "auth-secret", "missing"),
		location("/long", "configuration-snippet", "if ($http_x ~ '(a|b|ab|aa|aab)*x$') { return 403; }"),
		location("/refused", "configuration-snippet", "deny all")), "configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for path, want := range map[string]int{
			"/": 200, "/guarded": 503, "/elsewhere": 503, "/users": 503, "/refused": 503, "/long": 400,
		} {
			got := in.fetch(in.client, in.origin("h.example")+path, "X: "+strings.Repeat("a", 30_000))
			if got.status != want {
				t.Errorf("%s is %d %q, want %d", path, got.status, got.body, want)
			}
		}
	})
}
