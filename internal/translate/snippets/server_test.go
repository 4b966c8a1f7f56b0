package snippets_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// serverMeaning returns a result in a short form: the level of the server, and one line for each location.
func serverMeaning(t *testing.T, r *snippets.ServerResult) string {
	t.Helper()
	var all []string
	if of := meaning(t, &r.Result); of != "" {
		all = append(all, of)
	}
	for _, l := range r.Locations {
		text := strings.TrimPrefix(string(l.Match.Type), "location") + " " + l.Match.Path
		if l.Within != nil && strings.Contains(text, "~ ") {
			text += " in " + l.Within.Path
		}
		text += ":"
		if l.Closed {
			text += " closed"
		}
		if l.Internal {
			text += " internal"
		}
		if l.Service != nil {
			text += fmt.Sprintf(" to %s/%s:%s", l.Service.Namespace, l.Service.Name, l.Service.Port)
		}
		if l.Shared {
			text += " shared"
		}
		if of := meaning(t, l.Content); of != "" {
			text += " " + of
		}
		all = append(all, strings.TrimSpace(text))
	}
	return strings.Join(all, "\n")
}

// TestServer checks the level of a server.
func TestServer(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "server_tokens off;": "",
		"if ($http_x) { return 403; }": `{"steps":[{"if":{"variable":"http_x","steps":[{"return":{"status":403}}]}}],` +
			`"server":true}`,
		"rewrite ^/a /b break; break;": `{"steps":[{"rewrite":{"pattern":"^/a","target":"/b","flag":"last"}},` +
			`{"break":true}],"server":true}`,
		"add_header A b; more_set_headers 'C: d';": `{"more_headers":[{"set":[{"name":"C","value":"d"}]}],` +
			`"add_headers":[{"name":"A","value":"b"}],"server":true}`,
		"proxy_set_header A b; client_max_body_size 1m;": "",
		"allow 10.0.0.0/8; deny all;":                    "allow 10.0.0.0/8\ndeny all",
	} {
		r := snippets.Server(text, "")
		if got := serverMeaning(t, r); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
		if f := r.Closed(false); f != nil {
			t.Errorf("%s: %v", text, f)
		}
	}
}

func endpointHeader(name, value string) string {
	return fmt.Sprintf(`/a: {"endpoint_headers":[{"name":%q,"value":%q}]}`, name, value)
}

// TestLocations checks the paths and the content of locations.
func TestLocations(t *testing.T) {
	for text, want := range map[string]string{
		"location = /a { return 403; }": `= /a: {"steps":[{"return":{"status":403}}]}`,
		"location =/a { }":              "= /a:",
		"location ^~ /a { deny all; }":  "^~ /a: deny all",
		"location ^~/a { }":             "^~ /a:",
		"location /a/ { internal; }":    "/a/: internal",
		`location ~ \.php$ { }`:         `~ \.php$:`,
		`location ~* "^/a{2}" { }`:      "~* ^/a{2}:",
		`location ~*^/a { }`:            "~* ^/a:",
		`location ~ ^/(?<ID>\d+) { return 200 $id; }`: `~ ^/(?<ID>\d+): {"steps":[{"return":` +
			`{"status":200,"text":"$id","has_text":true}}]}`,
		"location /a { proxy_pass http://shop; }":                            "/a: to /shop:80",
		"location /a { proxy_pass http://shop:8080; proxy_read_timeout 5; }": "/a: to /shop:8080 proxy-read-timeout: 5",
		"location /a { proxy_pass http://shop.a.svc.cluster.local:http; }":   "/a: to a/shop:http",
		"location /a { proxy_pass https://shop.a.svc; }": "/a: to a/shop:443 " +
			"backend-protocol: HTTPS",
		"location /a { deny all; location = /a/b { allow all; } }":          "/a: deny all\n= /a/b: allow all",
		"location /a { deny all; location /a/b { } }":                       "/a: deny all\n/a/b: deny all",
		"proxy_set_header A b; location /a { }":                             endpointHeader("A", "b"),
		"proxy_set_header A b; location /a { proxy_set_header C d; }":       endpointHeader("C", "d"),
		"client_max_body_size 1m; location /a { }":                          "/a: proxy-body-size: 1m",
		"client_max_body_size 1m; location /a { client_max_body_size 2m; }": "/a: proxy-body-size: 2m",
		"location /a { proxy_pass http://10.0.0.1; }":                       "/a: closed",
		"location /a { proxy_pass http://a.example.com; }":                  "/a: closed",
		"location /a { proxy_pass http://shop/; }":                          "/a: closed",
		"location /a { proxy_pass http://$host; }":                          "/a: closed",
		"location /a { proxy_pass ftp://shop; }":                            "/a: closed",
		"location /a { if ($http_x) { proxy_pass http://shop; } }": "/a: closed " +
			`{"steps":[{"if":{"variable":"http_x"}}]}`,
		"location /a { auth_request /x; }": "/a: closed",
		"location /a { location /a/b { location ~ c { } } auth_request /x; } location = /a/c { }": "" +
			"/a: closed\n/a/b: closed\n~ c in /a/b: closed\n= /a/c:",
		"location /a { auth_basic a; auth_basic_user_file b; location /a/b { auth_basic off; location /a/b/c { } } " +
			"location /a/d { } }": "/a: closed\n/a/b:\n/a/b/c:\n/a/d: closed",
		"location /a { auth_basic a; auth_request b; location /a/b { auth_basic off; } }": "/a: closed\n/a/b: closed",
		"location /a { auth_basic off; location /a/b { auth_basic a; } }":                 "/a:\n/a/b: closed",
		"auth_basic off; location /a { }":                                                 "/a:",
		"location /a { location /a/b { auth_request /x; } }":                              "/a:\n/a/b: closed",
		"location /a { proxy_pass http://$host; location /a/b { } }":                      "/a: closed\n/a/b:",
		"location /a { limit_except GET { deny all; } location /a/b { } }": "/a: " +
			limited(`"GET","HEAD"`, `{"network":"all"}`) + besides + "\n/a/b:",
		"location /a { deny all; limit_except PUT { allow all; } location /a/b { } location /a/c { allow all; } }": "" +
			"/a: " + limited(`"PUT"`, `{"allow":true,"network":"all"}`) + "\ndeny all" + besides +
			"\n/a/b: deny all\n/a/c: allow all",
		"location /a { limit_except GET { auth_basic a; } location /a/b { } }": "/a: closed\n/a/b:",
		"allow 10.0.0.1; location /a { limit_except PUT { allow all; } }": "allow 10.0.0.1/32\n/a: " +
			limited(`"PUT"`, `{"allow":true,"network":"all"}`) + "\nallow 10.0.0.1/32" + besides,
		`location /a { location ~ \.php$ { deny all; } }`: "/a:" + "\n" + `~ \.php$ in /a: deny all`,
		"location ~ ^/a { location ~ b { } add_header A b; }": `~ ^/a: {"add_headers":[{"name":"A","value":"b"}]}` +
			"\n" + `~ b in ^/a: {"add_headers":[{"name":"A","value":"b"}]}`,
		"location ~ /a { location /a/b { deny all; location ~ c { deny all; } } location ~ c { } }": "" +
			"~ /a:\n~ c in /a:",
		"more_set_headers 'A: b'; location /a { more_set_headers 'C: d'; } #x": "" +
			`{"more_headers":[{"set":[{"name":"A","value":"b"}]}],"server":true}` + "\n/a: " +
			`{"more_headers":[{"set":[{"name":"A","value":"b"}]},{"set":[{"name":"C","value":"d"}]}]}`,
	} {
		r := snippets.Server(text, "")
		if got := serverMeaning(t, r); got != want {
			t.Errorf("%s\n got %s\nwant %s\n%v", text, got, want, r.Findings)
		}
		if f := r.Closed(false); f != nil {
			t.Errorf("%s: %v", text, f)
		}
	}
}

// TestClosedLocation checks that the finding because of which a location is closed says so.
func TestClosedLocation(t *testing.T) {
	for text, want := range map[string]string{
		"location /a {\n auth_request /x; }": `line 2: "auth_request" is not supported, and .*; meanwhile, requests ` +
			`for the location in line 1 get 503`,
		"location /a {\n location /a/b {\n proxy_pass http://10.0.0.1; } }": `line 3: "proxy_pass" does not name a ` +
			`Service: .*; meanwhile, requests for the location in line 2 get 503`,
	} {
		if all := fmt.Sprint(findingsOf(snippets.Server(text, ""))); !regexp.MustCompile(want).MatchString(all) {
			t.Errorf("%s\nhas the findings %s", text, all)
		}
	}
}

func findingsOf(r *snippets.ServerResult) (all []string) {
	for i := range r.Findings {
		all = append(all, r.Findings[i].String())
	}
	return all
}

// TestSharedLocations checks locations in the text of the ConfigMap.
func TestSharedLocations(t *testing.T) {
	r := snippets.Server("location /a { return 200; } add_header A b;", "location /a { deny all; } location /b { }")
	want := `{"add_headers":[{"name":"A","value":"b"}],"server":true}` + "\n" +
		`/a: closed shared {"steps":[{"return":{"status":200}}],"add_headers":[{"name":"A","value":"b"}]}` + "\n" +
		`/b: shared {"add_headers":[{"name":"A","value":"b"}]}`
	if got := serverMeaning(t, r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r.Closed(false) != nil || r.Closed(true) != nil {
		t.Error("the server is closed: ", r.Findings)
	}
}

// TestClosedServers checks texts because of which requests for all paths must be rejected.
func TestClosedServers(t *testing.T) {
	for _, text := range []string{
		"auth_request /x;", "auth_basic a; location /a { auth_basic off; }", "limit_except GET { deny all; }",
		"location /a {", "location /a { unknown; }", "location a { }", "location /a;",
		"location ~ ( { }", "location ! /a { }", "location = /a { location /a/b { } }",
		"location /a { location /b { } }", "location /a { } location ^~ /a { }", "location = /a { } location = /a { }",
		`location ~ \.php$ { location /a { } }`, "location ~ /a { location ~ b { location = /a/b { } } }",
		"location \"/a\n\" { }", "ssl_verify_client on;", "if ($a) { return 403; }",
	} {
		if snippets.Server(text, "").Closed(false) == nil {
			t.Errorf("%s: the server is not closed", text)
		}
		r := snippets.Server("", text)
		if r.Closed(true) == nil || r.Closed(false) != nil {
			t.Errorf("%s: the server is not closed because of the ConfigMap", text)
		}
	}
	if r := snippets.Location("location /a { }", ""); r.Closed(false) == nil {
		t.Error("a location in a location is not a guard")
	}
}

// TestRealIP checks that only texts of the ConfigMap change the addresses of clients.
func TestRealIP(t *testing.T) {
	const text = "set_real_ip_from 10.1.2.3/8;\nset_real_ip_from unix:;\nset_real_ip_from ::1;\n" +
		"real_ip_header CF-Connecting-IP;\nreal_ip_recursive ON;"
	on := true
	want := &snippets.RealIP{Trusted: []string{"10.0.0.0/8", "::1/128"}, Header: "CF-Connecting-IP", Recursive: &on,
		Lines: map[string]int{"set_real_ip_from": 1, "real_ip_header": 4, "real_ip_recursive": 5}}
	for name, got := range map[string]*snippets.RealIP{
		"http": snippets.ReadHTTP(text).RealIP, "server": snippets.Server("", text).RealIP,
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if r := snippets.Server(text, ""); r.RealIP != nil || r.Closed(false) == nil {
		t.Error("an Ingress changes the addresses of clients")
	}
	if r := snippets.Location("", text); r.Closed(true) == nil {
		t.Error("locations change the addresses of clients")
	}
	r := snippets.Server("", "location /a { "+text+" }")
	if r.RealIP != nil || !r.Locations[0].Closed || r.Closed(true) != nil {
		t.Error("a location changes the addresses of clients, or closes other locations")
	}
	if r := snippets.ReadHTTP("set_real_ip_from proxy.example;").RealIP; r == nil ||
		!slices.Equal(r.Networks(), []string{nginx.Nowhere}) {
		t.Error("a name does not mean that no proxy is trusted")
	}
}

// TestHead checks the size of request headers that a text for servers needs.
func TestHead(t *testing.T) {
	for _, c := range []struct {
		own, shared string
		want        snippets.Head
	}{
		{"server_tokens off;", "", snippets.Head{}},
		{"client_header_buffer_size 0;", "", snippets.Head{}},
		{"client_header_buffer_size 64k;\nlarge_client_header_buffers 4 8K;", "",
			snippets.Head{Place: snippets.Place{Line: 1}, Directive: "client_header_buffer_size", Bytes: 64 << 10}},
		{"client_header_buffer_size 16k;\nlarge_client_header_buffers 4 64k;", "",
			snippets.Head{Place: snippets.Place{Line: 2}, Directive: "large_client_header_buffers", Bytes: 256 << 10}},
		{"", "large_client_header_buffers 4 64k;", snippets.Head{Place: snippets.Place{Shared: true, Line: 1},
			Directive: "large_client_header_buffers", Bytes: 256 << 10}},
		{"large_client_header_buffers 4 16k;", "large_client_header_buffers 4 64k;", snippets.Head{
			Place: snippets.Place{Line: 1}, Directive: "large_client_header_buffers", Bytes: 64 << 10}},
		{"large_client_header_buffers 32767 1g;", "", snippets.Head{Place: snippets.Place{Line: 1},
			Directive: "large_client_header_buffers", Bytes: 32767 << 30}},
	} {
		r := snippets.Server(c.own, c.shared)
		if r.Head != c.want || r.Closed(false) != nil || r.Closed(true) != nil {
			t.Errorf("%q and %q: %+v", c.own, c.shared, r.Head)
		}
	}
	for _, text := range []string{
		"large_client_header_buffers 0 8k;", "large_client_header_buffers 4 0;", "large_client_header_buffers 4 8x;",
		"large_client_header_buffers 8k;", "large_client_header_buffers 4 2g;", "client_header_buffer_size -1;",
		"large_client_header_buffers 4 8k;\nlarge_client_header_buffers 4 8k;",
		"location /a { client_header_buffer_size 8k; }",
	} {
		if snippets.Server(text, "").Closed(false) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// FuzzServer checks that the program and the locations of any text are accepted, and that a directive behind a readable
// text is always found.
func FuzzServer(f *testing.F) {
	for _, text := range []string{
		"location = /a { return 403; } location ~* \"^/a{2}\" { deny all; }",
		"rewrite ^/a /b break; location ^~ /b { }",
		"location /a { internal; location /a/b { allow all; } }", "error_page 403 @a; location @a { return 404; }",
		"location /a { proxy_pass http://shop.b.svc:80; proxy_read_timeout 1h; }", "if ($host) { return 301 /$1; }",
		"location ~ ^/(?<a>.) { add_header A $a; try_files $uri @b; }", "allow 10.0.0.0/8; deny all; satisfy any;",
	} {
		f.Add(text, "")
		f.Add("location /c { return 200 c; }", text)
	}
	f.Fuzz(func(t *testing.T, own, shared string) {
		r := snippets.Server(own, shared)
		checkAccepted(t, &r.Result)
		for i := range r.Locations {
			checkAccepted(t, r.Locations[i].Content)
			if p := r.Locations[i].Content.Program; p != nil {
				checkRoundTrip(t, p)
			}
		}
		if r.Closed(false) == nil && snippets.Server(own+"\nauth_request /a;", shared).Closed(false) == nil {
			t.Errorf("%q hides what follows", own)
		}
	})
}

// TestInheritedByPaths checks the class of directives outside of locations that paths of Ingresses do not inherit:
// there is a warning only if they inherit them in ingress-nginx.
func TestInheritedByPaths(t *testing.T) {
	for text, class := range map[string]snippets.Class{
		"satisfy any;": snippets.LeftOut, "limit_rate 1k;": snippets.LeftOut,
		"absolute_redirect off;": snippets.LeftOut,
		"proxy_read_timeout 9;":  snippets.NoEffect, "location / { satisfy any; }": snippets.Works,
	} {
		read := snippets.Server(text, "")
		f := read.Findings[len(read.Findings)-1]
		if f.Class != class || class == snippets.LeftOut && !strings.Contains(f.Text, "unlike in ingress-nginx") {
			t.Errorf("%s: %+v", text, f)
		}
	}
}
