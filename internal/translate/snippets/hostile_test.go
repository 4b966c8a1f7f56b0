package snippets_test

import (
	"io"
	"reflect"
	"strings"
	"testing"

	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// TestHostileSnippets checks texts with which authors of Ingresses have attacked ingress-nginx. None of them leaves its
// location, reads a file, or runs code: each is refused, or has no effect.
func TestHostileSnippets(t *testing.T) {
	for name, test := range map[string]struct{ text, class string }{
		"CVE-2021-25742, a location of its own": {
			"location /token { alias /var/run/secrets/kubernetes.io/serviceaccount/; }", "guard",
		},
		"CVE-2021-25742, the location itself":  {"alias /var/run/secrets/kubernetes.io/serviceaccount/;", "left out"},
		"CVE-2021-25742, Lua":                  {"content_by_lua_block { ngx.say(io.open('/x')) }", "unreadable"},
		"CVE-2021-25742, another server":       {"} } server { listen 8080; location / { root /; ", "unreadable"},
		"CVE-2021-25742, the block in a quote": {"add_header A \"}\nlocation /x { root /; }\";", "left out"},
		"CVE-2021-25745, proxy_pass":           {"proxy_pass https://kubernetes.default.svc/;", "guard"},
		"CVE-2021-25748, a line break":         {"set $a b;\n}\nserver { listen 81; }\nlocation /c {", "unreadable"},
		"CVE-2022-4886, a log in a file":       {"access_log /etc/ingress-controller/x;", "no effect"},
		"CVE-2024-7646, a carriage return":     {"add_header A b;\r}\rlocation /x {\r root /;", "unreadable"},
		"CVE-2025-1974, an engine":             {"ssl_engine /proc/1/fd/3;", "unreadable"},
		"CVE-2026-4342, a comment":             {"# a\n}\nlocation /x { root /; }\n#", "unreadable"},
		"CVE-2026-22771, Lua that is checked":  {"access_by_lua 'os.exit(1)';", "unreadable"},
		"CVE-2026-41246, the path of a cookie": {"proxy_cookie_path / \"/'; os.exit(1) --\";", "left out"},
		"a module":                             {"load_module /tmp/x.so;", "unreadable"},
		"a file":                               {"include /etc/nginx/lua/*.conf;", "unreadable"},
		"an environment variable":              {"env TOKEN;", "unreadable"},
		"Caddy's placeholders":                 {"return 200 $request_body_file;", "unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			r := snippets.Location(test.text, "")
			for i := range r.Findings {
				if string(r.Findings[i].Class) == test.class {
					return
				}
			}
			t.Errorf("the findings are %v, want the class %s", r.Findings, test.class)
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
