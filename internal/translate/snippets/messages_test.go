package snippets_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// TestMessages checks that the errors for common mistakes name the line, and say what to write instead.
func TestMessages(t *testing.T) {
	const (
		syntax = "line 1: the text is not valid nginx configuration: "
		dollar = "a $ without a variable is not allowed, and nginx cannot escape it: remove the $"
	)
	for text, want := range map[string]string{
		"a b; }":             syntax + `unexpected "}": remove it, or add the "{" in front of it`,
		"add_header A b }":   syntax + `unexpected "}": add ";" in front of it`,
		";":                  syntax + `unexpected ";": remove it, or add a directive in front of it`,
		"add_header A 'b'c;": syntax + `unexpected "c" after a quoted argument: write a space between them`,
		"rewrite ^/a{2} /b;": syntax +
			`the text ends inside a block: add "}", or quotes around an argument that contains "{"`,
		"rewrite ^/a{2} /b; }": `line 1: "rewrite" has no block: ` +
			"end it with a semicolon, and write quotes around arguments with braces",
		"add_header A b\nadd_header C d;": `line 1: "add_header" has too many arguments: ` +
			`is a semicolon missing in front of "add_header"?`,
		"expires 1h off;":        `line 1: "expires" is not valid: write modified in front of the time, and not "1h"`,
		"add_header A;":          `line 1: "add_header" has 1 argument, and nginx expects: 2 to 3`,
		"proxy_buffering true;":  `line 1: "proxy_buffering" is neither on nor off, but "true"`,
		"\nelse { }":             "line 2: nginx has no else: write another if with the opposite condition",
		"if ($host) return 403;": `line 1: "if" needs a block in braces: write { ... } behind it`,
		"if $host = a { }": `line 1: "if" is not valid: ` +
			"the condition is not in parentheses: write if ($variable = text) { ... }",
		"if (-f /a) { }": `line 1: "if" is not valid: ` +
			"conditions on files are not supported, because no files are served: remove the if",
		`if ($host = "a" && $uri = "/b") { }`: `line 1: "if" is not valid: ` +
			"nginx has no && and ||: set a variable in one if for each comparison, and compare the variable",
		"if($host = a) { }": `line 1: there is no directive "if($host": write a space behind if`,
		`set $a "cost 5$";`: `line 1: "set" is not valid: ` + dollar,
		`set $a $$5;`:       `line 1: "set" is not valid: ` + dollar,
		"if ($request_body ~ a) { }": `line 1: "if" is not valid: ` +
			"there is no variable $request_body here, because snippets cannot read the body of requests",
		"if ($geoip2_country_code = DE) { }": `line 1: "if" is not valid: ` +
			"there is no variable $geoip2_country_code here, because use-geoip and use-geoip2 are not supported",
		"map $host $a { }": `line 1: nginx does not allow "map" here, but in: http (http-snippet)`,
		"add_header A b c;": `line 1: "add_header" is not valid: ` +
			`"c" is not always: if it belongs to the value, write the value in quotes`,
		"more_set_headers -a 'B';": `line 1: "more_set_headers" is not valid: ` +
			`there is no option "-a": write -s STATUSES or -t TYPES`,
		"set $a-b c;": `line 1: "set" is not valid: ` +
			`"a-b" is not the name of a variable: write letters, digits and _ behind the $`,
		"sub_filter '' b;": `line 1: "sub_filter" is not valid: ` +
			"the text to replace is empty: write the text to search for",
	} {
		findings := snippets.Location(text, "").Findings
		if len(findings) != 1 || findings[0].String() != want {
			t.Errorf("%q: got %q, want %s", text, written(findings), want)
		}
	}
}

// TestRedirectLoops checks that a redirect to HTTPS gets a warning if it also redirects clients that use HTTPS.
func TestRedirectLoops(t *testing.T) {
	const redirect = "return 301 https://$host$request_uri;"
	for text, loops := range map[string]bool{
		redirect: true, "set $a b; return https://${HTTP_HOST}$uri;": true,
		"location / { " + redirect + " }": true, "location @secure { " + redirect + " }": false,
		"if ($scheme = http) { " + redirect + " }":          false,
		"if ($http_x_tls = on) { break; }\n" + redirect:     false,
		"return 301 https://www.$host$request_uri;":         false,
		"return 301 https://$host/new;":                     false,
		"return 301 http://$host$request_uri;":              false,
		"location = /old { return 302 https://$host/new; }": false,
	} {
		found := written(snippets.Server(text, "").Findings)
		if strings.Contains(fmt.Sprint(found), "endless loop: use force-ssl-redirect") != loops {
			t.Errorf("%s: got %q, want a warning: %t", text, found, loops)
		}
	}
}

// TestUnreadableText checks which line the error of a text that cannot be parsed names.
func TestUnreadableText(t *testing.T) {
	for text, want := range map[string]string{
		"# a\n\nrewrite_by_lua_block { x }":       "line 3: the text contains Lua code",
		"if ($host) {\n \"set_by_lua\" $a 'x'; }": "line 2: the text contains Lua code",
		"Access_By_Lua_File x;":                   "line 1: the text contains Lua code",
		"# a\n} deny all;":                        "line 2: the text is not valid nginx configuration: unexpected",
		strings.Repeat("#", snippets.MaxBytes+1):  "the text is longer",
	} {
		f := snippets.Location(text, "").Closed(false)
		if f == nil || !strings.HasPrefix(f.String(), want) {
			t.Errorf("%.40q: the finding is %v, want %q", text, f, want)
		}
	}
}

// TestLimitsWithoutDeny checks that limit_except gets an information if its block rejects no client.
func TestLimitsWithoutDeny(t *testing.T) {
	for text, want := range map[string]bool{
		"limit_except GET { allow 10.0.0.0/8; }": true, "limit_except GET { allow 10.0.0.0/8; deny all; }": false,
		"limit_except GET { allow all; }": false,
	} {
		r := snippets.Location(text, "")
		found := written(r.Findings)
		if strings.Contains(fmt.Sprint(found), `"limit_except" rejects no client`) != want || r.Access == nil {
			t.Errorf("%s: got %q and %v, want an information: %t", text, found, r.Access, want)
		}
	}
}
