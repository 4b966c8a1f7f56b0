package featuretests

import (
	"net/http"
	"strings"
	"testing"
)

// escapingSnippets are texts that would end the block they are in, read files, run programs, choose another endpoint,
// or make nginx refuse its whole configuration.
var escapingSnippets = map[string]string{
	"end-of-block":       "}",
	"location-behind":    "}\nlocation /x { return 200 stolen; ",
	"location-between":   "} location /x { return 200 stolen; } location /y {",
	"server-behind":      "}} server { listen 80; server_name plain.example; location / { return 200 stolen; ",
	"comment-behind":     "return 200 stolen; } location /x { return 200 stolen; } #",
	"open-block":         "if ($uri) { return 200 stolen;",
	"open-quote":         `add_header X-A "a; return 200 stolen;`,
	"open-quote-in-if":   "if ($uri = '/x) { return 200 stolen; }",
	"no-semicolon":       "return 200 stolen",
	"brace-in-regex":     "rewrite ^/x{2}$ /y;",
	"quote-in-word":      `return 200 "stolen"x;`,
	"unknown-directive":  "steal on;",
	"unknown-variable":   "return 200 $stolen;",
	"server-in-location": "server { return 200 stolen; }",
	"module":             "load_module modules/stolen.so;",
	"include":            "include /etc/nginx/*.conf;",
	"file":               "if (-f /etc/passwd) { return 200 stolen; }",
	"lua":                `access_by_lua_block { ngx.say(io.popen("id"):read("*a")) }`,
	"lua-text":           `content_by_lua 'ngx.say("}")';`,
	"other-endpoint":     "proxy_pass http://192.0.2.1;",
	"other-service":      "set $service_name other;",
	"other-upstream":     "set $proxy_upstream_name default-plain-80;",
	"line-in-location":   `return 301 "/a\nSet-Cookie: stolen=1";`,
	"line-to-endpoint":   `proxy_set_header X-A "a\r\nX-User: root";`,
	"lookahead":          "rewrite ^/(?=x) /y;",
	"backreference":      `if ($uri ~ (.)\1) { return 403; }`,
	"nested-if":          "if ($uri) { if ($args) { return 403; } }",
	"status":             "return 1000;",
	"many-blocks":        strings.Repeat("if ($uri) {", 50_000) + strings.Repeat("}", 50_000),
	"long":               strings.Repeat("if ($uri) { set $a 1; }\n", 40_000),
	"deep-regex":         `rewrite "^/((((((a{100}){100}){100}){100}){100}){100})$" /y;`,
}

// TestSnippetEscapes checks that a snippet with a text of escapingSnippets makes all requests for its Ingress get 503,
// and has no effect on a second Ingress of the same host.
func TestSnippetEscapes(t *testing.T) {
	ip, port := backend(t, "one")
	objects := class + global(allowSnippets...) + service("one", port, ip) +
		rule("plain", "plain.example", "Prefix", "/", "one")
	for name, text := range escapingSnippets {
		objects += rule(name+"-plain", name+".example", "Prefix", "/", "one") +
			annotate(rule(name, name+".example", "Prefix", "/a", "one"), "configuration-snippet", text)
	}
	in := start(t, objects, "configmap default/global")
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		for name := range escapingSnippets {
			for path, want := range map[string]string{"/a": "", "/a/x": "", "/": "one /", "/x": "one /x"} {
				status := http.StatusOK
				if want == "" {
					status = http.StatusServiceUnavailable
				}
				in.expect(name+".example", path, status, want)
			}
		}
		in.expect("plain.example", "/x", http.StatusOK, "one /x")
	})
	for name := range escapingSnippets {
		if got := in.reasons("Ingress/default/" + name); len(got) == 0 {
			t.Errorf("%s has no verdict", name)
		}
		if got := in.reasons("Ingress/default/" + name + "-plain"); len(got) > 0 {
			t.Errorf("%s: the second Ingress has the verdicts %v", name, got)
		}
	}
	if strings.Contains(string(in.document()), "stolen") {
		t.Error("the document contains text of a snippet")
	}
}

// TestSnippetFieldWithLines checks that a field with a line break or another control character is left out.
func TestSnippetFieldWithLines(t *testing.T) {
	ip, port := backend(t, "one")
	objects := class + global(allowSnippets...) + service("one", port, ip)
	for name, value := range map[string]string{
		"escapes": `"a\r\nX-Injected: b"`, "lines": "\"a\r\nX-Injected: b\"", "lf": "\"a\n\nb\"", "nul": "\"a\x00b\"",
	} {
		objects += annotated(name, name+".example", "one", "configuration-snippet",
			"add_header X-A "+value+" always; add_header X-B b;")
	}
	in := start(t, objects, "configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, name := range []string{"escapes", "lines", "lf", "nul"} {
			got := in.get(name+".example", "/")
			if got.status != http.StatusOK || got.header.Get("X-B") != "b" {
				t.Errorf("%s: got %d %v", name, got.status, got.header)
			}
			if got.header["X-A"] != nil || got.header["X-Injected"] != nil {
				t.Errorf("%s: got %v", name, got.header)
			}
		}
	})
}

// TestSnippetForWebSockets checks that the fields that many authors copy for WebSockets leave them as they are.
func TestSnippetForWebSockets(t *testing.T) {
	ip, port := endpointOf(t, sockets(t, make(chan string, 10)))
	in := start(t, class+global(allowSnippets...)+service("one", port, ip)+annotated("a", "a.example", "one",
		"configuration-snippet", "proxy_http_version 1.1;\nproxy_set_header Upgrade $http_upgrade;\n"+
			`proxy_set_header Connection "upgrade";`), "configmap default/global")
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		d := in.socket("/echo")
		d.say("hello\n")
		if got := d.line(); got != "hello" {
			t.Errorf("got %q", got)
		}
		in.expect("a.example", "/", http.StatusOK, "plain []")
	})
}
