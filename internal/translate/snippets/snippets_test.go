package snippets_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// TestHarmless checks that common snippets that cannot restrict access are harmless.
func TestHarmless(t *testing.T) {
	for _, text := range []string{
		"", "  \n", "# a comment\n", "# deny all;\n",
		`add_header X-Frame-Options "DENY" always;`,
		"more_set_headers \"X-Frame-Options: DENY\" 'Strict-Transport-Security: max-age=31536000; includeSubDomains';",
		"expires 30d;\nproxy_hide_header X-Powered-By;\nserver_tokens off;\n",
		"client_header_buffer_size 64k;\nlarge_client_header_buffers 4 64k;",
		"proxy_read_timeout 1h; proxy_buffering off; gzip on; gzip_types text/css application/json; access_log off; " +
			"log_not_found off;",
		"map $http_upgrade $connection_upgrade {\n  default upgrade;\n  ''      close;\n  include 1;\n}",
		"proxy_set_header Upgrade $http_upgrade;\nproxy_set_header Connection \"upgrade\";",
		"proxy_set_header X-Forwarded-Proto https; proxy_set_header x-real-ip $remote_addr; proxy_set_header " +
			"Host $host;",
	} {
		if err := snippets.Harmless(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestNotHarmless checks that texts that may restrict access, and invalid texts, are not harmless, and what the error
// says.
func TestNotHarmless(t *testing.T) {
	for text, says := range map[string]string{
		"deny all;": "denylist-source-range", "add_header A b;\ndeny 10.0.0.0/8;": "line 2",
		"allow 10.0.0.0/8; deny all;":               "allowlist-source-range",
		"location /admin { return 403; }":           `"location"`,
		"location / { add_header A b; }":            `"location"`,
		"if ($host = a) { add_header A b; }":        `"if"`,
		"return 403;":                               "permanent-redirect",
		"return 503;":                               "k8singress.io/maintenance",
		"rewrite ^ /x break;":                       "rewrite-target",
		"auth_basic off;":                           "auth-type",
		"satisfy any;":                              "satisfy",
		"limit_except GET { deny all; }":            `"limit_except"`,
		"sub_filter '</head>' 'x';":                 "handler chain",
		"proxy_set_header X-Remote-User $user;":     "X-Remote-User",
		"proxy_set_header Accept-Encoding \"\";":    "Accept-Encoding",
		"proxy_set_header Authorization \"\";":      "Authorization",
		"proxy_set_header;":                         "proxy_set_header",
		"proxy_pass http://elsewhere;":              `"proxy_pass"`,
		"include /etc/nginx/deny.conf;":             `"include"`,
		"error_page 403 /x;":                        "custom-http-errors",
		"client_max_body_size 1;":                   "proxy-body-size",
		"ADD_HEADER a b;":                           "ADD_HEADER",
		"add_header A b { deny all; }":              `"add_header"`,
		"map $a $b;":                                `"map"`,
		"access_by_lua_block { ngx.exit(403) }":     "Lua",
		"add_header A b; Content_BY_Lua 'x';":       "Lua",
		"add_header A b":                            "not valid",
		"add_header A \"b;":                         "not valid",
		"add_header A b; }":                         "not valid",
		"} deny all; {":                             "not valid",
		strings.Repeat("a {", 2000):                 "blocks",
		"map $a $b {":                               "not valid",
		strings.Repeat("etag on;\n", 8<<10):         "longer",
		"\x00deny all;":                             "",
		"add_header A b;\u00a0deny all;":            "",
		"etag on; # x\ndeny all;":                   "line 2",
		"etag on; \"deny\" all;":                    "deny",
		"etag on; ${x} all;":                        "",
		"modsecurity on;":                           `"modsecurity"`,
		"lua_package_path x; access_by_lua_file x;": "Lua",
	} {
		if err := snippets.Harmless(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60q: the error is %v, want %q in it", text, err, says)
		}
	}
}

// TestParse checks the tree of directives.
func TestParse(t *testing.T) {
	got, err := snippets.Parse("# a\nlocation ~ \"^/a b\" {\n  return 403;\n}\nadd_header 'X-A' b;")
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	location, header := got[0], got[1]
	if location.Name != "location" || !slices.Equal(location.Args, []string{"~", "^/a b"}) || location.Line != 2 ||
		len(location.Block) != 1 ||
		location.Block[0].Name != "return" || location.Block[0].Line != 3 || location.Block[0].Block != nil {
		t.Errorf("the location is %+v", location)
	}
	if header.Name != "add_header" || !slices.Equal(header.Args, []string{"X-A", "b"}) || header.Block != nil {
		t.Errorf("the header is %+v", header)
	}
}

// TestModSecurity checks how ModSecurity rules are classified: whether they only detect, and whether they turn the
// engine on.
func TestModSecurity(t *testing.T) {
	for text, want := range map[string]struct{ detects, on bool }{
		"":                         {true, false},
		"SecRuleEngine On":         {false, true},
		"  secruleengine \"on\"\n": {false, true},
		"SecRuleEngine DetectionOnly\nSecRule ARGS x \"deny\"": {true, false},
		"SecRuleEngine Off":                                               {true, false},
		"SecRuleEngine DetectionOnly\nSecRuleEngine On":                   {false, true},
		"SecRuleEngine On\nSecRuleEngine DetectionOnly":                   {true, false},
		"SecRule ARGS x \"deny\"":                                         {false, false},
		"SecRuleEngine DetectionOnly\nSecRule A x \"ctl:ruleEngine=On\"":  {false, true},
		"SecRuleEngine ${X}":                                              {false, true},
		"Include /etc/nginx/owasp-modsecurity-crs/nginx-modsecurity.conf": {false, false},
		"# SecRuleEngine Off\nSecRule ARGS x \"deny\"":                    {false, false},
	} {
		if detects, on := snippets.DetectsOnly(text) == nil, snippets.EngineOn(text); detects != want.detects ||
			on != want.on {
			t.Errorf("%q: detects only %t, on %t", text, detects, on)
		}
	}
}

// FuzzHarmless checks that no text ends the process, and that a directive after a harmless text is always found.
func FuzzHarmless(f *testing.F) {
	for _, text := range []string{"deny all;", "map $a $b { default 1; }", "add_header A 'b c' always;",
		"if ($a ~ \"x\") { return 403; }", "# x\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if snippets.Harmless(text) != nil {
			return
		}
		// Nothing in a harmless text may hide the directives that follow it.
		if err := snippets.Harmless(text + "\n;deny all;"); err == nil {
			t.Errorf("%q hides what follows", text)
		}
		if err := snippets.Harmless(text + "\ndeny all;"); err == nil && strings.TrimSpace(text) != "" {
			t.Errorf("%q hides what follows", text)
		}
	})
}
