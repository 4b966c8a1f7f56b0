package snippets_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// TestAuth checks what texts for the requests to authentication services mean, and that the filter accepts it.
func TestAuth(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"proxy_set_header X-Forwarded-Host $HTTP_Host;\nproxy_set_header X-Forwarded-Method $request_method;": `{` +
			`"endpoint_headers":[{"name":"X-Forwarded-Host","value":"$http_host"},` +
			`{"name":"X-Forwarded-Method","value":"$request_method"}]}`,
		"proxy_set_header X-Original-URL '';": `{"endpoint_headers":[{"name":"X-Original-URL","value":""}]}`,
		"if ($request_method = OPTIONS) { return 200; }": `{"steps":[{"if":{"variable":"request_method",` +
			`"operator":"=","value":"OPTIONS","steps":[{"return":{"status":200}}]}}]}`,
		"set $team none; if ($http_x_team ~ ^(?<name>[a-z]+)$) { set $team $name; }\n" +
			"proxy_set_header X-Team $team;": `{"steps":[{"set":{"name":"team","value":"none"}},{"if":{` +
			`"variable":"http_x_team","operator":"~","value":"^(?\u003cname\u003e[a-z]+)$","steps":[` +
			`{"set":{"name":"team","value":"$name"}}]}}],"endpoint_headers":[{"name":"X-Team","value":"$team"}]}`,
		"if ($cookie_a) { more_clear_input_headers Cookie; more_set_input_headers 'X-A: $cookie_a'; }": `{"steps":[` +
			`{"if":{"variable":"cookie_a","directives":{"input_headers":[{"clear":["Cookie"]},{"set":[` +
			`{"name":"X-A","value":"$cookie_a"}]}]}}}]}`,
		"proxy_connect_timeout 1500ms; proxy_read_timeout 1m; proxy_send_timeout 3;": "proxy-connect-timeout: 2\n" +
			"proxy-read-timeout: 60\nproxy-send-timeout: 3",
	} {
		r := snippets.Auth(text)
		if got := meaning(t, r); got != want || lines(r) != "" {
			t.Errorf("%s\nhas the meaning %s\nwant %s\nfindings: %v", text, got, want, r.Findings)
		}
		checkAuthAccepted(t, r)
	}
}

func checkAuthAccepted(t *testing.T, r *snippets.Result) {
	t.Helper()
	raw, err := json.Marshal(ir.ExternalAuth{URL: "http://auth.example", Program: r.Program})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := filter.New("k8singress_external_auth", raw, &filter.Shared{}); err != nil {
		t.Errorf("%s is not accepted: %v", raw, err)
	}
}

// TestAuthClasses checks the classes of directives in the requests to authentication services.
func TestAuthClasses(t *testing.T) {
	for text, want := range map[string]snippets.Class{
		"add_header A b;": snippets.NoEffect, "expires 1h;": snippets.NoEffect, "access_log off;": snippets.NoEffect,
		"proxy_buffers 4 16k;": snippets.NoEffect, "proxy_buffering on;": snippets.NoEffect,
		"proxy_http_version 1.1;": snippets.NoEffect, "auth_request_set $a $upstream_http_a;": snippets.NoEffect,
		"proxy_set_header Upgrade $http_upgrade;": snippets.NoEffect, "gzip off;": snippets.NoEffect,
		"more_set_headers 'A: b';": snippets.LeftOut, "proxy_hide_header WWW-Authenticate;": snippets.LeftOut,
		"proxy_next_upstream error;": snippets.LeftOut, "proxy_ssl_certificate a;": snippets.LeftOut,
		"proxy_set_header Content-Length '';": snippets.LeftOut, "auth_basic Staff;": snippets.Guard,
		"allow 10.0.0.0/8;": snippets.Guard, "deny all;": snippets.Guard, "satisfy any;": snippets.Guard,
		"rewrite ^ /a break;": snippets.Guard, "break;": snippets.Guard, "proxy_pass http://a;": snippets.Guard,
		"if ($host) { break; }": snippets.Guard, "client_max_body_size 1;": snippets.Guard,
		"proxy_method POST;": snippets.Guard, "proxy_ssl_verify on;": snippets.Guard, "internal;": snippets.Guard,
		"proxy_cache_bypass $http_a;": snippets.Guard, "proxy_no_cache 1;": snippets.Guard,
		"error_page 401 = /a;": snippets.Guard, "limit_req zone=a;": snippets.Guard, "auth_request /a;": snippets.Guard,
		"location /a { return 200; }": snippets.Guard, "proxy_set_header Host $host;": snippets.Guard,
		"more_set_input_headers 'X-Forwarded-Host: a';": snippets.Guard, "proxy_intercept_errors on;": snippets.Guard,
		"set $args a;": snippets.Unreadable, "return 200 $arg_a;": snippets.Unreadable,
		"proxy_set_header A $uri;":                    snippets.Unreadable,
		"if ($query_string ~ a) { return 200; }":      snippets.Unreadable,
		"if ($host ~ (?<args>.)) { return 200; }":     snippets.Unreadable,
		"proxy_set_header A $nosuch;":                 snippets.Unreadable,
		"access_by_lua_block { ngx.exit(403) }":       snippets.Unreadable,
		"server_name a;":                              snippets.Unreadable,
		"}\nlocation /x { return 200;":                snippets.Unreadable,
		"if ($http_a) { proxy_set_header A b; }":      snippets.Unreadable,
		"if (-f /a) { return 200; }":                  snippets.Unreadable,
		"proxy_set_header A b; return 200":            snippets.Unreadable,
		"if ($http_a ~ '(?!x)') { return 200; }":      snippets.Unreadable,
		"proxy_set_header A \"b\nC: d\";":             snippets.Unreadable,
		"proxy_read_timeout forever;":                 snippets.LeftOut,
		"if ($host) { proxy_pass http://a.example; }": snippets.Guard,
	} {
		r := snippets.Auth(text)
		if !slices.ContainsFunc(r.Findings, func(f snippets.Finding) bool { return f.Class == want }) {
			t.Errorf("%s: %v, want %s", text, r.Findings, want)
		}
		closed := want == snippets.Guard || want == snippets.Unreadable
		if f := r.Closed(false); (f != nil) != closed {
			t.Errorf("%s: closed by %v", text, f)
		} else if f != nil && strings.Contains(f.Text, "  ") {
			t.Errorf("%s: %s", text, f.Text)
		}
		if !closed {
			checkAuthAccepted(t, r)
		}
	}
}

// TestAuthAndLocation checks that equal texts for different places do not share their meaning.
func TestAuthAndLocation(t *testing.T) {
	const text = "deny 192.0.2.77;"
	if snippets.Location(text, "").Closed(false) != nil || snippets.Auth(text).Closed(false) == nil {
		t.Error("the text has the same meaning in both places")
	}
}

// FuzzAuth checks that the program of any text is accepted, and that a directive behind a readable text is always
// found.
func FuzzAuth(f *testing.F) {
	for _, text := range []string{
		"proxy_set_header A $request_uri; proxy_read_timeout 1h;", "if ($http_a ~ \"^b{2}$\") { return 200; }",
		"set $a \"${host}\"; more_set_input_headers \"A: $a\" 'B: c';", "more_clear_input_headers A*; add_header A b;",
		"if ($request_method = OPTIONS) { return 204; } # a", "proxy_set_header X-Original-Method '';",
		"if ($http_!) { }",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := snippets.Auth(text)
		if r.Program != nil {
			checkAuthAccepted(t, r)
			checkRoundTrip(t, r.Program)
		}
		if r.Closed(false) == nil && snippets.Auth(text+"\nauth_request /a;").Closed(false) == nil {
			t.Errorf("%q hides what follows", text)
		}
	})
}
