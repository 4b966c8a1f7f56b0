package snippets_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// meaning returns a result in a short form: the program as JSON, and the other parts in words.
func meaning(t *testing.T, r *snippets.Result) string {
	t.Helper()
	var parts []string
	for _, part := range []any{r.Program, r.Substitution, r.TryFiles} {
		raw, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != "null" {
			parts = append(parts, string(raw))
		}
	}
	if r.Access != nil {
		parts = append(parts, words(r.Access.Rules)...)
		if limit := r.Access.LimitExcept; limit != nil {
			parts = append(parts, strings.TrimRight(besides[1:]+" "+strings.Join(words(limit.Rules), ", "), " "))
		}
	}
	for i := range r.Values {
		v := &r.Values[i]
		parts = append(parts, strings.TrimSpace(v.Annotation+" "+string(v.Part))+": "+v.Text)
	}
	return strings.Join(parts, "\n")
}

// lines returns the classes of the directives that are not of class Works, with their lines.
func lines(r *snippets.Result) string {
	var all []string
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Class != snippets.Works {
			all = append(all, fmt.Sprintf("%d %s", f.Line, f.Class))
		}
	}
	return strings.Join(all, ", ")
}

// TestSteps checks the directives that are run in order.
func TestSteps(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "  # nothing\n": "", "# access_by_lua_block { } was here\n": "",
		"return 200 \"access_by_lua_block\";": `{"steps":[{"return":{"status":200,"text":"access_by_lua_block",` +
			`"has_text":true}}]}`,
		"return 403;":                  `{"steps":[{"return":{"status":403}}]}`,
		"return 200 \"a; }\\n$host\";": `{"steps":[{"return":{"status":200,"text":"a; }\n$host","has_text":true}}]}`,
		"return 200 '';":               `{"steps":[{"return":{"status":200,"has_text":true}}]}`,
		"return 444;":                  `{"steps":[{"return":{"status":444}}]}`,
		"return 301 https://www.example$request_uri;": `{"steps":[{"return":` +
			`{"status":301,"text":"https://www.example$request_uri","has_text":true}}]}`,
		"return $scheme://$host/new;": `{"steps":[{"return":` +
			`{"status":302,"text":"$scheme://$host/new","has_text":true}}]}`,
		"rewrite ^(/shop)$ $1/ redirect;": `{"steps":[{"rewrite":` +
			`{"pattern":"^(/shop)$","target":"$1/","flag":"redirect"}}]}`,
		"rewrite ^/old/(?<rest>.*) /new/$rest;": `{"steps":[{"rewrite":` +
			`{"pattern":"^/old/(?\u003crest\u003e.*)","target":"/new/$rest"}}]}`,
		`rewrite "^/a{2}\.b\"$" '/c' break;`: `{"steps":[{"rewrite":` +
			`{"pattern":"^/a{2}\\.b\"$","target":"/c","flag":"break"}}]}`,
		"rewrite ^ /maintenance? last;": `{"steps":[{"rewrite":` +
			`{"pattern":"^","target":"/maintenance?","flag":"last"}}]}`,
		"rewrite ^/x https://x.example permanent;": `{"steps":[{"rewrite":` +
			`{"pattern":"^/x","target":"https://x.example","flag":"permanent"}}]}`,
		"set $A $HTTP_Host; if ($A ~ (?<B>C$HTTP_HOST)) { return 204 \"$1A $b ${B}\"; }": `{"steps":[{"set":` +
			`{"name":"a","value":"$http_host"}},{"if":{"variable":"a","operator":"~",` +
			`"value":"(?\u003cB\u003eC$HTTP_HOST)","steps":[{"return":{"status":204,"text":"$1A $b ${b}",` +
			`"has_text":true}}]}}]}`,
		"break;":                      `{"steps":[{"break":true}]}`,
		"set $a \"x${host}-$arg_b\";": `{"steps":[{"set":{"name":"a","value":"x${host}-$arg_b"}}]}`,
		"set $args a=b;":              `{"steps":[{"set":{"name":"args","value":"a=b"}}]}`,
		"set $b $a; set $a 1;":        `{"steps":[{"set":{"name":"b","value":"$a"}},{"set":{"name":"a","value":"1"}}]}`,
		"if ($http_x_key) { return 403; }": `{"steps":[{"if":` +
			`{"variable":"http_x_key","steps":[{"return":{"status":403}}]}}]}`,
		"if ( $host = \"a b\" ) { break; }": `{"steps":[{"if":` +
			`{"variable":"host","operator":"=","value":"a b","steps":[{"break":true}]}}]}`,
		"if ($host != '') { }": `{"steps":[{"if":{"variable":"host","operator":"!="}}]}`,
		"if ($uri ~ \"^/v(?<n>[0-9])\") { set $m $n; }": `{"steps":[{"if":{"variable":"uri","operator":"~",` +
			`"value":"^/v(?\u003cn\u003e[0-9])","steps":[{"set":{"name":"m","value":"$n"}}]}}]}`,
		"if ($http_user_agent ~* (badbot|scraper)) { return 403; }": `{"steps":[{"if":{"variable":"http_user_agent",` +
			`"operator":"~*","value":"(badbot|scraper)","steps":[{"return":{"status":403}}]}}]}`,
		"if ($request_method !~ ^(GET|HEAD)$) { return 405; }": `{"steps":[{"if":{"variable":"request_method",` +
			`"operator":"!~","value":"^(GET|HEAD)$","steps":[{"return":{"status":405}}]}}]}`,
		"if ($host !~* ^WWW) { break; }": `{"steps":[{"if":` +
			`{"variable":"host","operator":"!~*","value":"^WWW","steps":[{"break":true}]}}]}`,
	} {
		r := snippets.Location(text, "")
		checkAccepted(t, r)
		if got := meaning(t, r); got != want || lines(r) != "" {
			t.Errorf("%s\nhas the meaning %s\nwant %s\nfindings: %v", text, got, want, r.Findings)
		}
	}
}

// TestHeaders checks the directives for header fields, and what conditions inherit.
func TestHeaders(t *testing.T) {
	for text, want := range map[string]string{
		"add_header X-A $host; add_header X-B \"\" always;": `{"add_headers":[{"name":"X-A","value":"$host"},` +
			`{"name":"X-B","value":"","always":true}]}`,
		`more_set_headers "X-A: b: c" 'Server HTTPS' X-C "X-D:";`: `{"more_headers":[{"set":[` +
			`{"name":"X-A","value":"b: c"},{"name":"Server","value":"HTTPS"},{"name":"X-C","value":""},` +
			`{"name":"X-D","value":""}]}]}`,
		`more_set_headers -s '404 500' -t 'text/html text/plain' -s 503 "X-A: b";`: `{"more_headers":[{"set":[` +
			`{"name":"X-A","value":"b"}],"statuses":[404,500,503],"types":["text/html","text/plain"]}]}`,
		"more_clear_headers 'X-Internal-*' Server;": `{"more_headers":[{"clear":["X-Internal-*","Server"]}]}`,
		"more_set_input_headers -r 'X-A: $host'; more_clear_input_headers X-B;": `{"input_headers":[{"set":[` +
			`{"name":"X-A","value":"$host"}],"if_present":true},{"clear":["X-B"]}]}`,
		"proxy_set_header Host $host; proxy_set_header Accept-Encoding '';": `{"endpoint_headers":[` +
			`{"name":"Host","value":"$host"},{"name":"Accept-Encoding","value":""}]}`,
		"grpc_set_header A 1; grpc_set_header B 2; proxy_set_header a 3;": `{"endpoint_headers":[` +
			`{"name":"a","value":"3"},{"name":"B","value":"2"}]}`,
		"proxy_hide_header X-A; fastcgi_hide_header X-B; grpc_pass_header Server;": `{"hide":["X-A","X-B"],` +
			`"pass":["Server"]}`,
		"proxy_cookie_flags $HOST Secure $arg_a; proxy_cookie_flags ~^a nohttponly;": `{"cookie_flags":[` +
			`{"cookie":"$host","flags":["Secure","$arg_a"]},{"cookie":"~^a","flags":["nohttponly"]}]}`,
		"proxy_cookie_flags off;":        `{"cookie_flags":[]}`,
		"default_type application/json;": `{"default_type":"application/json"}`,
		"access_log off;":                `{"unlogged":true}`,
		"auth_request_set $u $upstream_http_a; proxy_set_header X-U $u;": `{"endpoint_headers":[` +
			`{"name":"X-U","value":"$u"}],"auth_variables":[{"name":"u","value":"$upstream_http_a"}]}`,
		"more_set_headers 'A: $status $sent_http_b';": `{"more_headers":[{"set":[` +
			`{"name":"A","value":"$status $sent_http_b"}]}]}`,
		// A condition without directives of its own keeps the directives of the location.
		"add_header A 1; if ($host) { set $a 1; }": `{"steps":[{"if":{"variable":"host","steps":[{"set":` +
			`{"name":"a","value":"1"}}]}}],"add_headers":[{"name":"A","value":"1"}]}`,
		// add_header replaces inherited fields. The directives of headers-more are added to them, and all other
		// directives are inherited, even if they come later.
		"if ($host) { add_header B 2; more_clear_headers C; }\n" +
			"add_header A 1; more_set_headers 'C: 3'; expires 1s; proxy_set_header D 4; access_log off;": `{"steps":` +
			`[{"if":{"variable":"host","directives":{"endpoint_headers":[{"name":"D","value":"4"}],"more_headers":` +
			`[{"set":[{"name":"C","value":"3"}]},{"clear":["C"]}],"add_headers":[{"name":"B","value":"2"}],` +
			`"expires":{"seconds":1},"unlogged":true}}}],"endpoint_headers":[{"name":"D","value":"4"}],` +
			`"more_headers":[{"set":[{"name":"C","value":"3"}]}],"add_headers":[{"name":"A","value":"1"}],` +
			`"expires":{"seconds":1},"unlogged":true}`,
		"if ($host) { expires 2s; more_set_input_headers 'A: 1'; }\n" +
			"add_header A 1; expires 1s; default_type a/b;": `{"steps":[{"if":{"variable":"host",` +
			`"directives":{"input_headers":[{"set":[{"name":"A","value":"1"}]}],"add_headers":` +
			`[{"name":"A","value":"1"}],"expires":{"seconds":2},"default_type":"a/b"}}}],"add_headers":` +
			`[{"name":"A","value":"1"}],"expires":{"seconds":1},"default_type":"a/b"}`,
	} {
		r := snippets.Location(text, "")
		checkAccepted(t, r)
		if got := meaning(t, r); got != want || lines(r) != "" {
			t.Errorf("%s\nhas the meaning %s\nwant %s\nfindings: %v", text, got, want, r.Findings)
		}
	}
}

// TestOtherEffects checks the directives that are not part of the program.
func TestOtherEffects(t *testing.T) {
	for text, want := range map[string]string{
		"allow 10.0.0.0/8; allow 2001:db8::1; deny all;": "allow 10.0.0.0/8\nallow 2001:db8::1/128\ndeny all",
		"deny 192.0.2.7; allow all;":                     "deny 192.0.2.7/32\nallow all",
		"deny 192.0.2.77/24;":                            "deny 192.0.2.0/24",
		"limit_except get { deny all; }":                 limited(`"GET","HEAD"`, `{"network":"all"}`) + besides,
		"limit_except HEAD PUT Put { allow 10.0.0.0/8; deny all; }": limited(`"HEAD","PUT"`,
			`{"allow":true,"network":"10.0.0.0/8"},{"network":"all"}`) + besides,
		"deny 10.0.0.1; limit_except POST { allow all; } allow all;": limited(`"POST"`,
			`{"allow":true,"network":"all"}`) + "\ndeny 10.0.0.1/32\nallow all" + besides,
		"limit_except GET { } deny all;":                 "deny all",
		"limit_except GET { deny all; auth_basic off; }": limited(`"GET","HEAD"`, `{"network":"all"}`) + besides,
		"sub_filter '</head>' '<b>$host</b>';": `{"pairs":[{"from":"\u003c/head\u003e",` +
			`"to":"\u003cb\u003e$host\u003c/b\u003e"}]}`,
		"sub_filter a b; sub_filter c ''; sub_filter_once off; sub_filter_types text/css *; " +
			"sub_filter_last_modified on;": `{"pairs":[{"from":"a","to":"b"},{"from":"c","to":""}],"repeat":true,` +
			`"types":["text/css","*"],"keep_last_modified":true}`,
		"sub_filter_once off;":                "",
		"satisfy ANY;":                        "satisfy: any",
		"satisfy any;":                        "satisfy: any",
		"client_max_body_size 64m;":           "proxy-body-size: 64m",
		"proxy_read_timeout 1h;":              "proxy-read-timeout: 3600",
		"proxy_send_timeout 1h 30m;":          "",
		"proxy_send_timeout '1h 30m';":        "proxy-send-timeout: 5400",
		"proxy_connect_timeout 1500ms;":       "proxy-connect-timeout: 2",
		"grpc_read_timeout 0;":                "proxy-read-timeout: 1",
		"fastcgi_read_timeout 5;":             "proxy-read-timeout: 5",
		"proxy_next_upstream error http_502;": "proxy-next-upstream: error http_502",
		"proxy_next_upstream_timeout 0;":      "proxy-next-upstream-timeout: 0",
		"proxy_next_upstream_tries 2;":        "proxy-next-upstream-tries: 2",
		"proxy_buffering OFF;":                "proxy-buffering: off",
		"proxy_request_buffering off;":        "proxy-request-buffering: off",
		"proxy_http_version 1.1;":             "proxy-http-version: 1.1",
		"absolute_redirect off;":              "relative-redirects: true",
		"limit_rate 1m; limit_rate_after 1k;": "limit-rate: 1024\nlimit-rate-after: 1",
		"limit_rate 100;":                     "limit-rate: 1",
		"limit_rate 0;":                       "limit-rate: 0",
		"proxy_cookie_path /a /b;":            "proxy-cookie-path: /a /b",
		"proxy_cookie_path / '/ ;httponly; SECURE;samesite=none;';": "" +
			"proxy-cookie-path: / \"/; HttpOnly; Secure; SameSite=None\"",
		"proxy_cookie_domain off;": "proxy-cookie-domain: off",
		"proxy_redirect http://a/ https://$host/;": "" +
			"proxy-redirect-from: http://a/\nproxy-redirect-to: https://$host/",
		"proxy_redirect default;":                    "proxy-redirect-from: default",
		"fastcgi_index index.php;":                   "fastcgi-index: index.php",
		"proxy_ssl_verify on; proxy_ssl_name a.svc;": "proxy-ssl-verify: on\nproxy-ssl-name: a.svc",
		"grpc_ssl_server_name on; proxy_ssl_verify_depth 2; proxy_ssl_protocols TLSv1.2 TLSv1.3; " +
			"proxy_ssl_ciphers A:B;": "proxy-ssl-server-name: on\nproxy-ssl-verify-depth: 2\n" +
			"proxy-ssl-protocols: TLSv1.2 TLSv1.3\n" +
			"proxy-ssl-ciphers: A:B",
		"proxy_ssl_name a.$HOST; set $b 1; grpc_ssl_name $b;": `{"steps":[{"set":{"name":"b","value":"1"}}]}` +
			"\nproxy-ssl-name: a.$host",
		"proxy_ssl_certificate /a.pem; proxy_ssl_certificate_key /a.pem; proxy_ssl_trusted_certificate /b.pem; " +
			"proxy_ssl_crl /c.pem; grpc_ssl_certificate /d.pem;": "proxy-ssl-secret tls.crt: /a.pem\n" +
			"proxy-ssl-secret tls.key: /a.pem\nproxy-ssl-secret ca.crt: /b.pem\nproxy-ssl-secret ca.crl: /c.pem",
		// These conditions only cancel what they would inherit.
		"access_log off; if ($host) { access_log on; }": `{"steps":[{"if":{"variable":"host","directives":{}}}],` +
			`"unlogged":true}`,
		"add_header A 1; if ($host) { add_header Upgrade b; }": `{"steps":[{"if":{"variable":"host",` +
			`"directives":{"add_headers":[]}}}],"add_headers":[{"name":"A","value":"1"}]}`,
	} {
		r := snippets.Location(text, "")
		checkAccepted(t, r)
		if got := meaning(t, r); got != want {
			t.Errorf("%s\nhas the meaning %s\nwant %s", text, got, want)
		}
	}
}

// TestFindings checks the classes of directives, and what the messages say.
func TestFindings(t *testing.T) {
	for text, want := range map[string]string{
		// These directives have no effect.
		"server_tokens off;":                      "no effect: server-tokens",
		"gzip on;":                                "no effect: use-gzip",
		"proxy_buffers 4 8k;":                     "no effect: buffers",
		"access_log /var/log/a.log;":              "no effect: access-log-path",
		"proxy_set_header Upgrade $http_upgrade;": "no effect: WebSockets",
		"proxy_set_header connection '';":         "no effect: Connection",
		"allow unix:;":                            "no effect: IP addresses",
		"limit_req_log_level error;":              "no effect: logged",
		"limit_except GET { allow unix:; }":       "no effect: neither allow nor deny",
		// These directives are left out.
		"limit_except GET { access_log off; }":     "left out: outside of limit_except",
		"proxy_cache one;":                         "left out: k8singress.io/chains",
		"root /var/www;":                           "left out: Service",
		"limit_except GET { auth_basic off; }":     "left out: outside of limit_except",
		"auth_basic_user_file /a;":                 "left out: auth-secret",
		"add_header Content-Length 1;":             "left out: Content-Length",
		"add_header \"a b\" 1;":                    "left out: a b",
		"add_header A \"b\nc\";":                   "left out: one line",
		"more_set_headers 'Transfer-Encoding: x';": "left out: Transfer-Encoding",
		"proxy_set_header TE x;":                   "left out: TE",
		"proxy_set_header CDN-Loop '';":            "left out: CDN-Loop",
		"more_clear_input_headers cdn-loop;":       "left out: CDN-Loop",
		"more_set_input_headers 'Host: x';":        "left out: Host",
		"proxy_http_version 1.0;":                  "left out: HTTP/1.1",
		"proxy_read_timeout never;":                "left out: never",
		"limit_rate $a; set $a 1;":                 "left out: fixed value",
		"proxy_ssl_name $1;":                       "left out: set a variable",
		"proxy_cookie_path / \"/; Domain=a\";":     "left out: HttpOnly",
		"proxy_cookie_path / \"/'; Secure\";":      "left out: proxy_cookie_flags",
		"proxy_cookie_domain a \"b; Secure\";":     "left out: proxy_cookie_flags",
		"if ($host) { limit_rate 1k; }":            "left out: outside of if",
		"more_set_headers 'A: b' add_header C d;":  "left out: \"add_header\" is an argument of \"more_set_headers\"",
		"gzip_types text/css\ndeny all;":           "left out: \"deny\" is an argument",
		"proxy_cookie_flags one secure safe;":      "left out: \"safe\" is not one of nosecure, secure",
		// These directives may keep clients out.
		"location /admin { deny all; }":             "guard: changes who responds",
		"limit_except GET { auth_basic a; }":        "guard: auth-secret",
		"limit_except GET { proxy_pass http://a; }": "guard: changes who responds",
		"auth_basic OFF;":                           "guard: auth-secret",
		"auth_basic \"Staff\";":                     "guard: auth-secret",
		"auth_request /auth;":                       "guard: auth-url",
		"proxy_pass http://other;":                  "guard: who responds",
		"internal;":                                 "guard: may reject",
		"secure_link $a;":                           "guard: may reject",
		"modsecurity on;":                           "guard: may reject",
		"set_real_ip_from 10.0.0.0/8;":              "guard: addresses of clients",
		"proxy_pass_request_headers off;":           "guard: what endpoints receive",
		// nginx or this package refuses these texts.
		"deny all":                                             `unreadable: add ";"`,
		"add_header A \"b;":                                    `unreadable: add "`,
		"} location / { return 200;":                           `unreadable: unexpected "}"`,
		"if ($host) { return 403 }":                            `unreadable: unexpected "}"`,
		"if ($host) { return 403;":                             `unreadable: add "}"`,
		"add_header \"A\"b;":                                   "unreadable: after a quoted argument",
		"; deny all;":                                          `unreadable: unexpected ";"`,
		"include /etc/nginx/x.conf;":                           "unreadable: another file",
		"access_by_lua_block { ngx.exit(403) }":                "unreadable: Lua",
		"perl x;":                                              "unreadable: other languages",
		"js_content main.hello;":                               "unreadable: other languages",
		"add_haeder A b;":                                      "unreadable: did you mean add_header?",
		"deny all {}":                                          "unreadable: has no block",
		"if ($host);":                                          "unreadable: block in braces",
		"deny;":                                                "unreadable: nginx expects: 1",
		"server { }":                                           "unreadable: in: http",
		"worker_processes 4;":                                  "unreadable: in: main",
		"map $a $b { default 1; }":                             "unreadable: in: http",
		"if ($host) { if ($uri) { break; } }":                  "unreadable: does not allow",
		"if ($host) { deny all; }":                             "unreadable: does not allow",
		"if ($host) { proxy_set_header A b; }":                 "unreadable: does not allow",
		"if (-f $request_uri) { break; }":                      "unreadable: files",
		"if (!-e $request_uri) { break; }":                     "unreadable: files",
		"if $host { break; }":                                  "unreadable: in parentheses",
		"if () { break; }":                                     "unreadable: write a condition",
		"if ( ) { break; }":                                    "unreadable: in parentheses",
		"if (host) { break; }":                                 "unreadable: write a condition",
		"if ($host = a b) { break; }":                          "unreadable: write a condition",
		"if ($host == a) { break; }":                           "unreadable: operators",
		"if ($nothing = a) { break; }":                         "unreadable: $nothing",
		"if ($host = $nothing) { break; }":                     "unreadable: $nothing",
		"if ($host ~ \"(\") { break; }":                        "unreadable: RE2",
		"if ($host ~ \"(?<host>a)\") { break; }":               "unreadable: cannot be set",
		"rewrite ^/(?!a) /b;":                                  "unreadable: operator !~",
		"if ($uri ~ (?<=a)b) { break; }":                       "unreadable: operator !~",
		"rewrite ^ /b first;":                                  "unreadable: permanent",
		"rewrite ^ '';":                                        "unreadable: empty",
		"rewrite ^ /$nothing;":                                 "unreadable: $nothing",
		"rewrite ^ \"/a\\nb\";":                                "unreadable: one line",
		"return 99;":                                           "unreadable: status code",
		"if ($1 = a) { break; }":                               "unreadable: cannot be compared",
		"return 1000;":                                         "unreadable: status code",
		"return /path;":                                        "unreadable: status code",
		"return 302 \"/a\\r\\nSet-Cookie: b\";":                "unreadable: one line",
		"return 200 $;":                                        "unreadable: variable",
		"set a b;":                                             "unreadable: write $a",
		"set $team_a 1; return 200 $teem_a;":                   "unreadable: did you mean $team_a?",
		"add_header A $requst_uri;":                            "unreadable: did you mean $request_uri?",
		"if ($hots = a) { break; }":                            "unreadable: did you mean $host?",
		"rewrite ^(/a)\\1 /b;":                                 "unreadable: earlier group",
		"access_log off\ndeny all;":                            "unreadable: semicolon",
		"set $host b;":                                         "unreadable: $host cannot be set",
		"set $proxy_upstream_name b;":                          "unreadable: cannot be set",
		"set $status b;":                                       "unreadable: cannot be set",
		"set $http_a b;":                                       "unreadable: cannot be set",
		"set $1 b;":                                            "unreadable: name of a variable",
		"set $a-b c;":                                          "unreadable: name of a variable",
		"proxy_ssl_name $nothing;":                             "unreadable: $nothing",
		"proxy_ssl_name \"a\nb\";":                             "unreadable: one line",
		"proxy_ssl_crl a; proxy_ssl_crl b;":                    "unreadable: line 2 already",
		"add_header A $nothing;":                               "unreadable: $nothing",
		"add_header A b maybe;":                                "unreadable: always",
		"proxy_set_header X-User \"a\nb\";":                    "unreadable: one line",
		"proxy_set_header \"X User\" a;":                       "unreadable: X User",
		"more_set_input_headers \"X: a\nb\";":                  "unreadable: one line",
		"more_set_headers -a 'X: b';":                          "unreadable: option",
		"more_set_headers -s 404;":                             "unreadable: no header",
		"more_set_headers -s;":                                 "unreadable: needs a value",
		"more_set_headers -s 4xx 'A: b';":                      "unreadable: 4xx",
		"more_clear_headers *;":                                "unreadable: asterisk",
		"expires 1h; expires 2h;":                              "unreadable: line 2 already",
		"proxy_buffering maybe;":                               "unreadable: neither on nor off",
		"satisfy some;":                                        "unreadable: all, any",
		"auth_basic off; auth_basic a;":                        "unreadable: line 2 already contains it",
		"auth_basic off; auth_basic off;":                      "unreadable: line 2 already contains it",
		"if ($host) { auth_basic off; }":                       "unreadable: does not allow",
		"deny 10.0.0.0/40;":                                    "unreadable: network",
		"limit_except GET { deny some; }":                      "unreadable: network",
		"limit_except TRACE { deny all; }":                     "unreadable: \"TRACE\" is not one of the methods GET",
		"limit_except GET,POST { deny all; }":                  "unreadable: methods",
		"limit_except $a { deny all; } set $a 1;":              "unreadable: methods",
		"limit_except { deny all; }":                           "unreadable: nginx expects: 1 or more",
		"limit_except GET;":                                    "unreadable: block in braces",
		"limit_except GET { } limit_except PUT { deny all; }":  "unreadable: line 2 already contains it",
		"limit_except GET { return 403; }":                     "unreadable: does not allow",
		"limit_except GET { satisfy any; }":                    "unreadable: does not allow",
		"limit_except GET { limit_except GET { } }":            "unreadable: does not allow",
		"if ($host) { limit_except GET { deny all; } }":        "unreadable: does not allow",
		"allow localhost;":                                     "unreadable: network",
		"deny 192.0.2.1,192.0.2.2;":                            "unreadable: network",
		"sub_filter '' a;":                                     "unreadable: empty",
		strings.Repeat("sub_filter a b;\n", 256):               "unreadable: more than 255 texts",
		"sub_filter a $nothing;":                               "unreadable: $nothing",
		"auth_request_set $host a;":                            "unreadable: cannot be set",
		"proxy_redirect /a;":                                   "unreadable: replacement",
		"proxy_cookie_path /a;":                                "unreadable: replacement",
		"proxy_cookie_flags a;":                                "unreadable: write off, or the name",
		"proxy_cookie_flags ~( secure;":                        "unreadable: proxy_cookie_flags",
		"proxy_cookie_flags a secure; proxy_cookie_flags off;": "unreadable: line 2 already contains it",
		"proxy_cookie_flags off; proxy_cookie_flags a secure;": "unreadable: line 2 already contains it",
		strings.Repeat("if ($host) {}\n", 1001):                "unreadable: blocks",
		strings.Repeat("break;\n", 1001):                       "unreadable: 1000 steps",
		strings.Repeat("add_header A b;\n", 501):               "unreadable: 500 header",
		strings.Repeat("rewrite ^"+strings.Repeat("a", 1000)+" /;\n", 51): "unreadable: too large together",
		"add_header A \"\xff\";":                          "unreadable: UTF-8",
		strings.Repeat("#", snippets.MaxBytes+1):          "unreadable: longer",
		"add_header A " + strings.Repeat("b", 4097) + ";": "unreadable: longer than 4096",
	} {
		class, says, _ := strings.Cut(want, ": ")
		r := snippets.Location("# first line\n"+text, "")
		found := false
		for i := range r.Findings {
			f := &r.Findings[i]
			found = found || string(f.Class) == class && strings.Contains(f.Text, says)
		}
		if !found {
			t.Errorf("%.80s\nhas the findings %v, want %s", text, r.Findings, want)
		}
		closes := class == "guard" || class == "unreadable"
		if (r.Closed(false) != nil) != closes || r.Closed(true) != nil {
			t.Errorf("%.80s\ncloses: %v", text, r.Closed(false))
		}
		if class == "unreadable" && meaning(t, r) != "" {
			t.Errorf("%.80s\nhas the meaning %s, although it is unreadable", text, meaning(t, r))
		}
	}
}

// TestTwoTexts checks how the text of an Ingress and the text of the ConfigMap are combined.
func TestTwoTexts(t *testing.T) {
	const own, shared = "if ($a) { more_set_headers 'A: 1'; }\nexpires 1h; proxy_buffering on;",
		"set $a 1;\n\nmore_set_headers 'B: 2';\nexpires 2h;\nproxy_buffering off;\nproxy_read_timeout 5;"
	r := snippets.Location(own, shared)
	want := `{"steps":[{"if":{"variable":"a","directives":{"more_headers":[{"set":[{"name":"B","value":"2"}]},` +
		`{"set":[{"name":"A","value":"1"}]}],"expires":{"seconds":3600}}}},{"set":{"name":"a","value":"1"}}],` +
		`"more_headers":[{"set":[{"name":"B","value":"2"}]}],"expires":{"seconds":3600}}` +
		"\nproxy-buffering: on\nproxy-read-timeout: 5"
	if got := meaning(t, r); got != want {
		t.Errorf("the meaning is %s\nwant %s", got, want)
	}
	if got := lines(r); got != "4 no effect, 5 no effect" {
		t.Errorf("the findings are %s", got)
	}
	if last := r.Values[1]; last.Place != (snippets.Place{Shared: true, Line: 6}) {
		t.Errorf("the last value is at %+v", last.Place)
	}
	if snippets.Location(own, shared) != r {
		t.Error("the same texts were interpreted again")
	}
	bad := snippets.Location("expires 1h;", "location / { deny all; }")
	if bad.Closed(false) != nil || bad.Closed(true) == nil {
		t.Errorf("the wrong text is closed: %v", bad.Findings)
	}
}

// TestErrorsAreBounded checks that a text with many errors does not cause as many messages.
func TestErrorsAreBounded(t *testing.T) {
	if n := len(snippets.Location(strings.Repeat("add_haeder A b;\n", 1000), "").Findings); n != 20 {
		t.Errorf("there are %d findings", n)
	}
}

// TestFindingsOfBlocks checks that the finding of a condition precedes the findings of its block, with their lines.
func TestFindingsOfBlocks(t *testing.T) {
	r := snippets.Location("\nif ($host) {\n  return 403;\n}\n\nbreak;", "")
	var got []string
	for i := range r.Findings {
		got = append(got, fmt.Sprint(r.Findings[i].Line, " ", r.Findings[i].Directive))
	}
	if all := strings.Join(got, ", "); all != "2 if, 3 return, 6 break" {
		t.Errorf("the findings are %s", all)
	}
}

// FuzzLocation checks that no text ends the process, that each program is the same after it was written as JSON, and
// that a directive behind a readable text is always found.
func FuzzLocation(f *testing.F) {
	for _, text := range []string{
		"if ($host ~* \"^a(?<b>.)\") { return 301 https://$b$request_uri; }", "rewrite ^(/a)$ $1/ redirect;",
		"more_set_headers -s 404 'A: b' \"C d\";", "add_header A 'b;c' always; # x\nexpires modified +1d;",
		"set $a \"${host}\\\"\"; if ( $a != 'b' ) { break; }", "allow 10.0.0.0/8; deny all; satisfy any;",
		"sub_filter '</head>' '<b>'; sub_filter_once off;", "proxy_set_header A \"\"; proxy_read_timeout 1h;",
		"location /a { limit_except GET { deny all; } }", "access_log off; proxy_redirect a b;",
	} {
		f.Add(text, "")
		f.Add("set $x 1;", text)
	}
	for _, row := range snippets.Table() {
		if row.Class == snippets.Works {
			f.Add(row.Name+" a b;", row.Name+" on;")
		}
	}
	f.Fuzz(func(t *testing.T, own, shared string) {
		r := snippets.Location(own, shared)
		checkAccepted(t, r)
		if r.Program != nil {
			checkRoundTrip(t, r.Program)
		}
		if r.Closed(false) == nil && snippets.Location(own+"\n;internal;", shared).Closed(false) == nil {
			t.Errorf("%q hides what follows", own)
		}
		if r.Closed(false) == nil && snippets.Location(own+"\ninternal;", shared).Closed(false) == nil {
			t.Errorf("%q hides what follows", own)
		}
	})
}

func checkRoundTrip(t *testing.T, p *ir.Program) {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again ir.Program
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	if second, err := json.Marshal(again); err != nil || string(second) != string(raw) {
		t.Errorf("%s\nbecomes %s, %v", raw, second, err)
	}
}
