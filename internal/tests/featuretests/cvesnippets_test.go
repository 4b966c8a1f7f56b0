package featuretests

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cveSnippet is a snippet of an advisory, for the host NAME.example.
type cveSnippet struct {
	name, annotation, text string
	// path is requested, and status and body are the response.
	path   string
	status int
	body   string
	// verdict is a part of what the author reads.
	verdict string
}

// cveSnippets returns texts that ran code or read files in another controller. folder stands for its files.
func cveSnippets(folder string) []cveSnippet {
	return []cveSnippet{
		{"cve-2021-25742-files", "server-snippet", "location /token { alias " + folder + "/; }", "/token/secret",
			http.StatusNotFound, "", `line 1: "alias" is left out`},
		{"cve-2021-25742-lua", "configuration-snippet", "content_by_lua_block { ngx.say(io.open('/secret'):read()) }",
			"/", http.StatusServiceUnavailable, "", "line 1: the text contains Lua code"},
		{"cve-2021-25742-server", "server-snippet", "}\nserver { listen 80; location / { return 200 owned; }", "/",
			http.StatusServiceUnavailable, "", `line 1: the text is not valid nginx configuration: unexpected "}"`},
		{"cve-2021-25745-token", "configuration-snippet", "proxy_set_header Authorization $token;\n" +
			"proxy_pass https://kubernetes.default.svc/;", "/", http.StatusServiceUnavailable, "",
			"line 1: \"proxy_set_header\" is not valid: there is no variable $token"},
		{"cve-2021-25745-api", "server-snippet", "location /api {\n proxy_pass https://kubernetes.default.svc/;\n}",
			"/api", http.StatusServiceUnavailable, "", `line 2: "proxy_pass" does not name a Service`},
		{"cve-2021-25748-lines", "configuration-snippet", "set $a b;\n}\nlocation /owned {\nreturn 200 owned;",
			"/owned", http.StatusServiceUnavailable, "",
			`line 2: the text is not valid nginx configuration: unexpected "}"`},
		{"cve-2022-4886-log", "configuration-snippet", "access_log " + folder + "/owned;", "/", http.StatusOK, "web /",
			"line 1: \"access_log\" has no effect"},
		{"cve-2024-7646-return", "configuration-snippet", "add_header A b;\r}\rlocation /owned { return 200 owned;\r",
			"/owned", http.StatusServiceUnavailable, "", "line 1: the text is not valid nginx configuration"},
		{"cve-2025-1974-engine", "configuration-snippet", "ssl_engine " + folder + "/secret;", "/",
			http.StatusServiceUnavailable, "", `line 1: nginx does not allow "ssl_engine" here, but in: main`},
		{"cve-2026-4342-comment", "configuration-snippet", "# a comment\n}\nlocation /owned { return 200 owned; }\n#",
			"/owned", http.StatusServiceUnavailable, "",
			`line 2: the text is not valid nginx configuration: unexpected "}"`},
		{"cve-2026-41246-cookie", "configuration-snippet", "proxy_cookie_path / \"/'); os.exit(1) --\";", "/",
			http.StatusOK, "web /", `line 1: "proxy_cookie_path" is left out`},
		{"cve-2026-22771-checked", "configuration-snippet", "access_by_lua 'os.exit(1)';", "/",
			http.StatusServiceUnavailable, "", "line 1: the text contains Lua code"},
	}
}

// TestCVEOfSnippets checks that snippets of advisories read no file, run no code and leave their location, although
// the administrator allows snippets. The author reads which line is wrong, and another Ingress of the host is served.
func TestCVEOfSnippets(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "secret"), []byte(fromFile), 0o600); err != nil {
		t.Fatal(err)
	}
	ip, port := backend(t, "web")
	all := cveSnippets(folder)
	manifests := class + service("web", port, ip) + global(allowSnippets...)
	for _, c := range all {
		manifests += annotated(c.name, c.name+".example", "web", c.annotation, c.text) +
			rule(c.name+"-plain", c.name+"-plain.example", "Prefix", "/", "web")
	}
	in := start(t, manifests, "configmap default/global")
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			in := in.speaking(t, plain1)
			got := in.get(c.name+".example", c.path)
			if got.status != c.status || got.body != c.body {
				t.Errorf("%s: %d %q, want %d %q", c.path, got.status, got.body, c.status, c.body)
			}
			in.expect(c.name+"-plain.example", c.path, http.StatusOK, "web "+c.path)
			in.eventually("the verdict", func() error {
				if found := fmt.Sprint(in.problems("Ingress/default/" + c.name)); !strings.Contains(found, c.verdict) {
					return fmt.Errorf("it is %s, without %s", found, c.verdict)
				}
				return nil
			})
		})
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 1 {
		t.Errorf("the folder has the files %v, %v", files, err)
	}
}

// TestCVEOfPaths checks that a path of an Ingress is only compared with the paths of requests, whatever it contains.
// A path with control characters is not served. In ingress-nginx, such paths became configuration.
func TestCVEOfPaths(t *testing.T) {
	ip, port := backend(t, "web")
	// A path with a semicolon gets 400, because endpoints may read it in several ways. Slashes of a request are
	// merged, so no request has the path with two slashes.
	paths := map[string]struct {
		path   string
		status int
	}{
		"cve-2021-25745": {`/a {} location /owned { alias /var/run/secrets/kubernetes.io/; } location /b`,
			http.StatusBadRequest},
		"cve-2022-4886": {`/a"; log_format owned "$request_body"; access_log /tmp/owned owned; #`,
			http.StatusBadRequest},
		"cve-2026-24512": {`/a"; } location /owned { return 200 owned; } #`, http.StatusBadRequest},
		"proxy-pass":     {`/owned"; proxy_pass http://192.0.2.1; #`, http.StatusNotFound},
		"block":          {`/a" {} location /owned { return 200 owned`, http.StatusOK},
		"lua":            {`/a{content_by_lua_block{os.exit(1)}}`, http.StatusOK},
		"placeholder":    {`/{env.HOME}/{file./etc/hostname}`, http.StatusOK},
	}
	broken := map[string]string{
		"cve-2021-25748": "/a\n}\nlocation /owned {", "cve-2026-4342": "/a # \n} location /owned { return 200 owned; }",
		"carriage-return": "/a\r}\rlocation /owned {", "nul": "/a\x00", "separator": "/a\u2028b",
	}
	manifests := class + service("web", port, ip)
	for name, c := range paths {
		manifests += rule(name, name+".example", "ImplementationSpecific", c.path, "web")
	}
	for name, path := range broken {
		manifests += rule(name, name+".example", "ImplementationSpecific", path, "web")
	}
	in := start(t, manifests)
	for name, c := range paths {
		t.Run(name, func(t *testing.T) {
			in := in.speaking(t, plain1)
			escaped, body := (&url.URL{Path: c.path}).EscapedPath(), ""
			if c.status == http.StatusOK {
				body = "web " + escaped
			}
			in.expect(name+".example", escaped, c.status, body)
			in.expect(name+".example", "/owned", http.StatusNotFound, "")
			in.expect(name+".example", "/a", http.StatusNotFound, "")
			if got := in.reasons("Ingress/default/" + name); len(got) > 0 {
				t.Errorf("the verdicts are %q", got)
			}
		})
	}
	for name := range broken {
		t.Run(name, func(t *testing.T) {
			in := in.speaking(t, plain1)
			for _, path := range []string{"/a", "/a%0a", "/owned", "/"} {
				in.expect(name+".example", path, http.StatusNotFound, "")
			}
			in.awaitVerdict("Ingress/default/"+name, "InvalidPath", "contains a control character")
		})
	}
}

// noWebhook checks that no port of the controller reads an AdmissionReview, which is how CVE-2025-1974 reached
// ingress-nginx: it tested the configuration of objects that any client of the network could send.
func noWebhook(t *testing.T) {
	ip, port := backend(t, "web")
	in := start(t, class+service("web", port, ip)+rule("a", "a.example", "Prefix", "/", "web"))
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","object":` +
		`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"b","namespace":"default"}}}}`
	for _, target := range []string{"http://" + in.http, in.origin("other.example"), "http://" + in.admin} {
		for _, path := range []string{"/", "/networking/v1/ingresses", "/validate"} {
			got := in.sendBy(in.client, target+path, http.MethodPost, strings.NewReader(review),
				"Content-Type: application/json")
			if got.status != http.StatusNotFound || strings.Contains(got.body, "allowed") {
				t.Errorf("%s%s: %d %q", target, path, got.status, got.body)
			}
		}
	}
}

// TestRefusedExpressions checks that a path with a regular expression that RE2 cannot match, or that is too large, is
// not served, and that its author reads why.
func TestRefusedExpressions(t *testing.T) {
	ip, port := backend(t, "web")
	all := map[string]struct{ path, verdict string }{
		"repeats":   {"/(a{1000}){1000}", "invalid repeat count"},
		"nested":    {"/((a{100}){100}){100}", "invalid repeat count"},
		"lookahead": {"/(?=x)", "RE2 cannot look ahead or behind"},
		"backwards": {`/(a)\1`, "invalid escape sequence"},
		"long":      {"/" + strings.Repeat("a", 100<<10), "bytes"},
	}
	manifests := class + service("web", port, ip)
	for name, c := range all {
		manifests += annotate(rule(name, name+".example", "ImplementationSpecific", c.path, "web"), "use-regex", "true")
	}
	in := start(t, manifests)
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			in := in.speaking(t, plain1)
			in.expect(name+".example", "/aaaa", http.StatusNotFound, "")
			in.awaitVerdict("Ingress/default/"+name, "InvalidRegex", c.verdict)
		})
	}
}
