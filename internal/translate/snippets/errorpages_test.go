package snippets_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// pages returns the meaning of a text that only has these error pages.
func pages(list string) string { return `{"errors":{"pages":[` + list + `]}}` }

// TestErrorPages checks the meaning of the directives for error pages in a location.
func TestErrorPages(t *testing.T) {
	const notFound = `{"statuses":[404],"target":"/x"}`
	for text, want := range map[string]string{
		"error_page 404 /x;":                  pages(notFound),
		"error_page 404 /x; error_page 500 =": "",
		"error_page 502 503 502 = @Sorry;":    pages(`{"statuses":[502,503],"target":"@Sorry","any_status":true}`),
		"error_page 404 =200 /x?a=$URI;":      pages(`{"statuses":[404],"target":"/x?a=$uri","status":200}`),
		"error_page 300 599 https://$host/;":  pages(`{"statuses":[300,599],"target":"https://$host/"}`),
		"error_page 404 /x; if ($http_a) { error_page 404 /y; }": `{"steps":[{"if":{"variable":"http_a",` +
			`"directives":{"errors":{"pages":[{"statuses":[404],"target":"/y"}]}}}}],` +
			`"errors":{"pages":[` + notFound + `]}}`,
		"error_page 404 /x; if ($http_a) { add_header A b; }": `{"steps":[{"if":{"variable":"http_a",` +
			`"directives":{"add_headers":[{"name":"A","value":"b"}],"errors":{"pages":[` + notFound + `]}}}}],` +
			`"errors":{"pages":[` + notFound + `]}}`,
		"recursive_error_pages on; proxy_intercept_errors On;": `{"errors":{"intercept":true,"recursive":true}}`,
		"grpc_intercept_errors off;": `{"errors":{"intercept":false}}` + "\n" +
			"disable-proxy-intercept-errors: true",
		"try_files $uri /x?$ARGS;":    `{"target":"/x?$args"}`,
		"try_files $uri $uri/ =404;":  `{"status":404}`,
		"try_files /a.html @backend;": `{"target":"@backend"}`,
	} {
		r := snippets.Location(text, "")
		if want == "" {
			if r.Closed(false) == nil {
				t.Errorf("%s: it is readable", text)
			}
			continue
		}
		checkAccepted(t, r)
		if got := meaning(t, r); got != want {
			t.Errorf("%s\nhas the meaning %s\nwant %s", text, got, want)
		}
	}
}

// TestWrongErrorPages checks texts that nginx refuses, and texts that could not be understood.
func TestWrongErrorPages(t *testing.T) {
	for text, want := range map[string]string{
		"error_page 200 /x;":                                    `"200" is not a status code from 300 to 599`,
		"error_page 600 /x;":                                    `"600" is not a status code from 300 to 599`,
		"error_page 404 = =200 /x;":                             `"=" is not a status code from 300 to 599`,
		"error_page 499 /x;":                                    "499",
		"error_page =200 /x;":                                   "codes to replace are missing",
		"error_page 404 =2000 /x;":                              `"2000" is not a status code from 200 to 999`,
		"error_page 404 =ok /x;":                                `"ok" is not a status code`,
		"error_page 404 '';":                                    "write a path",
		"error_page 404 @;":                                     "begins with @",
		"error_page 404 @$host;":                                "contains no variables",
		"error_page 404 '@a\x01';":                              "control character",
		"error_page 404 '/a\nb';":                               "one line",
		"error_page 404 /$unknown;":                             "$unknown",
		"error_page 404;":                                       "2 or more",
		"try_files $uri;":                                       "2 or more",
		"try_files $unknown /x;":                                "$unknown",
		"try_files $uri =x;":                                    `"x" is not a status code`,
		"try_files $uri ''; ":                                   "write a path",
		"try_files a =404; try_files b c":                       "",
		"if ($host) { try_files a =404; }":                      "nginx does not allow",
		"recursive_error_pages on; recursive_error_pages off;":  "already contains it",
		"proxy_intercept_errors on; proxy_intercept_errors on;": "already contains it",
	} {
		f := snippets.Location(text, "").Closed(false)
		if f == nil || f.Class != snippets.Unreadable || !strings.Contains(f.Text, want) {
			t.Errorf("%s: %+v, want %s", text, f, want)
		}
	}
}

// TestNamedLocations checks locations with names, and what locations inherit about errors.
func TestNamedLocations(t *testing.T) {
	const page = `{"statuses":[401],"target":"@x"}`
	for text, want := range map[string]string{
		"location @x { return 302 /login; } error_page 401 @x; recursive_error_pages on;": `{"errors":{"pages":[` +
			page + `],"recursive":true},"server":true}` + "\n" +
			`@ @x: {"steps":[{"return":{"status":302,"text":"/login","has_text":true}}],` +
			`"errors":{"pages":[` + page + `],"recursive":true}}`,
		"error_page 401 @x; proxy_intercept_errors on; location /a { proxy_intercept_errors off; " +
			"error_page 404 /b; }": `{"errors":{"pages":[` + page + `],"intercept":true},"server":true}` + "\n" +
			`/a: {"errors":{"pages":[{"statuses":[404],"target":"/b"}],"intercept":false}}` + "\n" +
			"disable-proxy-intercept-errors: true",
		"location @x { proxy_pass http://shop; internal; }": "@ @x: internal to /shop:80",
		"location /a { try_files $uri @x; }":                `/a: {"target":"@x"}`,
	} {
		r := snippets.Server(text, "")
		if got := serverMeaning(t, r); got != want || r.Closed(false) != nil {
			t.Errorf("%s\n got %s\nwant %s\n%v", text, got, want, r.Findings)
		}
	}
	for text, want := range map[string]string{
		"location @x { location /a { } }": "no locations in it", "location /a { location @x { } }": "outside of other",
		"location @x { } location @x { }": "already has a location", "location @ { }": "begins with @",
		"location = @x { }": "does not begin with a slash", "location @$host { }": "no variables",
	} {
		f := snippets.Server(text, "").Closed(false)
		if f == nil || f.Class != snippets.Unreadable || !strings.Contains(f.Text, want) {
			t.Errorf("%s: %+v, want %s", text, f, want)
		}
	}
	if got := lines(&snippets.Server("try_files $uri =404;", "").Result); got != "1 no effect" {
		t.Errorf("try_files of a server: %s", got)
	}
}
