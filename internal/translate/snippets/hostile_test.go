package snippets_test

import (
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// hostileSnippets are texts with which authors of Ingresses have attacked ingress-nginx, or could do so. classes are
// the classes that one of their findings must have in the snippets of locations, servers, requests to authentication
// services, and http. If there is only one class, it is the same for all. An empty class is any class except Works.
var hostileSnippets = map[string]struct {
	text    string
	classes []snippets.Class
}{
	"CVE-2021-25742, a location of its own": {
		"location /token { alias /var/run/secrets/kubernetes.io/serviceaccount/; }",
		[]snippets.Class{snippets.Guard, snippets.LeftOut, snippets.Guard, snippets.Unreadable},
	},
	"CVE-2021-25742, the location itself": {
		"alias /var/run/secrets/kubernetes.io/serviceaccount/;",
		[]snippets.Class{snippets.LeftOut, snippets.Unreadable, snippets.LeftOut, snippets.Unreadable},
	},
	"CVE-2021-25742, Lua": {
		"content_by_lua_block { ngx.say(io.open('/x')) }",
		[]snippets.Class{snippets.Unreadable},
	},
	"CVE-2021-25742, another server": {
		"} } server { listen 8080; location / { root /; ",
		[]snippets.Class{snippets.Unreadable},
	},
	"CVE-2021-25742, the block in a quote": {
		"add_header A \"}\nlocation /x { root /; }\";",
		[]snippets.Class{snippets.LeftOut, snippets.LeftOut, snippets.NoEffect, ""},
	},
	"CVE-2021-25745, proxy_pass": {
		"proxy_pass https://kubernetes.default.svc/;",
		[]snippets.Class{snippets.Guard, snippets.Unreadable, snippets.Guard, snippets.Unreadable},
	},
	"CVE-2021-25748, a line break": {
		"set $a b;\n}\nserver { listen 81; }\nlocation /c {",
		[]snippets.Class{snippets.Unreadable},
	},
	"CVE-2022-4886, a log in a file": {
		"access_log /etc/ingress-controller/x;",
		[]snippets.Class{snippets.NoEffect, snippets.NoEffect, snippets.NoEffect, ""},
	},
	"CVE-2024-7646, a carriage return": {
		"add_header A b;\r}\rlocation /x {\r root /;",
		[]snippets.Class{snippets.Unreadable},
	},
	"CVE-2025-1974, an engine": {"ssl_engine /proc/1/fd/3;", []snippets.Class{snippets.Unreadable}},
	"CVE-2026-4342, a comment": {
		"# a\n}\nlocation /x { root /; }\n#",
		[]snippets.Class{snippets.Unreadable},
	},
	"CVE-2026-22771, Lua that is checked": {"access_by_lua 'os.exit(1)';", []snippets.Class{snippets.Unreadable}},
	"CVE-2026-41246, the path of a cookie": {
		"proxy_cookie_path / \"/'; os.exit(1) --\";",
		[]snippets.Class{snippets.LeftOut, snippets.LeftOut, snippets.NoEffect, ""},
	},
	"a module":                  {"load_module /tmp/x.so;", []snippets.Class{snippets.Unreadable}},
	"a file":                    {"include /etc/nginx/lua/*.conf;", []snippets.Class{snippets.Unreadable}},
	"an environment variable":   {"env TOKEN;", []snippets.Class{snippets.Unreadable}},
	"Caddy's placeholders":      {"return 200 $request_body_file;", []snippets.Class{snippets.Unreadable}},
	"an opening brace":          {"{", []snippets.Class{snippets.Unreadable}},
	"a closing brace":           {"}", []snippets.Class{snippets.Unreadable}},
	"a block without its end":   {"if ($host) { add_header A b;", []snippets.Class{snippets.Unreadable}},
	"an end without a block":    {"if ($host) { add_header A b; } }", []snippets.Class{snippets.Unreadable}},
	"1 MB of conditions":        {strings.Repeat("if ($host) { }\n", 1<<16), []snippets.Class{snippets.Unreadable}},
	"1 MB of nested conditions": {strings.Repeat("if ($host) { #x", 1<<16), []snippets.Class{snippets.Unreadable}},
}

// TestHostileSnippets checks hostileSnippets in each kind of snippet. None of them leaves its block, reads a file, or
// runs code: each is refused, or has no effect.
func TestHostileSnippets(t *testing.T) {
	for name, test := range hostileSnippets {
		t.Run(name, func(t *testing.T) {
			for i, findings := range [][]snippets.Finding{
				snippets.Location(test.text, "").Findings, snippets.Server(test.text, "").Findings,
				snippets.Auth(test.text).Findings, snippets.ReadHTTP(test.text).Findings,
			} {
				want := test.classes[min(i, len(test.classes)-1)]
				if !slices.ContainsFunc(findings, func(f snippets.Finding) bool {
					return f.Class == want || want == "" && f.Class != snippets.Works
				}) {
					t.Errorf("the findings of snippet %d are %v, want the class %q", i, findings, want)
				}
			}
		})
	}
}

// TestLikeCrossplane checks that texts are parsed as by crossplane, except escapes and parentheses, with which
// crossplane differs from nginx.
func TestLikeCrossplane(t *testing.T) {
	for _, text := range []string{
		"", "# a\n", "a;", "a b 'c d' \"e;{}\" f\"g;", "a\n  b # c\n  'd\n\ne';\nf;", "a { b; c { d e; } } f;",
		"a ${b}c $d;",
		"a '';", "a \"b'c\" 'd\"e';", "a b#c;", "a$ b;", "a {\n}\n", "a x=y;;", "a", "a {", "}", "a }", "a 'b",
	} {
		got, err := snippets.Parse(text)
		want, valid := byCrossplane(text)
		if valid != (err == nil) || valid && !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, %v\ncrossplane: %+v, %t", text, got, err, want, valid)
		}
	}
}

func byCrossplane(text string) (directives []snippets.Directive, valid bool) {
	payload, err := crossplane.Parse("text", &crossplane.ParseOptions{
		SingleFile: true, SkipDirectiveContextCheck: true, SkipDirectiveArgsCheck: true,
		Open: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
	})
	if err != nil || len(payload.Errors) > 0 {
		return nil, false
	}
	return converted(payload.Config[0].Parsed), true
}

func converted(all crossplane.Directives) []snippets.Directive {
	directives := []snippets.Directive{}
	for _, d := range all {
		to := snippets.Directive{Name: d.Directive, Args: d.Args, Line: d.Line}
		if d.Block != nil {
			to.Block = converted(d.Block)
		}
		directives = append(directives, to)
	}
	return directives
}

// TestLikeNginx checks where the parser follows nginx and not crossplane.
func TestLikeNginx(t *testing.T) {
	for text, want := range map[string][]string{
		`a "b\\.c" '\"\'' \t\n\x \$;`: {`b\.c`, `"'`, "\t\n\\x", `\$`},
		`a ( "b")c;`:                  {"(", "b", ")c"},
		"a b}c;":                      {"b}c"},
		"a b\rc;":                     {"b", "c"},
		"a \u00a0b;":                  {"\u00a0b"},
		`a "b\"c" d\;e;`:              {`b"c`, `d\;e`},
	} {
		got, err := snippets.Parse(text)
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0].Args, want) {
			t.Errorf("%q is %+v, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`a "b"c;`, "a { b }", "a { b } c; }", `a "b`, "a { b;", "{ a; }", `a \`} {
		if got, err := snippets.Parse(text); err == nil {
			t.Errorf("%q is %+v, and nginx refuses it", text, got)
		}
	}
}
