package filter_test

import "strings"

// rewrites returns the settings of a program that rewrites a path.
func rewrites(pattern, target, flag string) string {
	return steps(`{"rewrite": {"pattern": "` + pattern + `", "target": "` + target + `", "flag": "` + flag + `"}}`)
}

// reroutes returns a request for which the program wants another route.
func reroutes(target, next string) requestCase {
	const shop = "GET http://shop.example"
	return requestCase{request: shop + target, next: rerouted + shop + next, response: "none"}
}

func redirects(target, location string) requestCase {
	return gets("GET http://shop.example"+target, "302 | Location: "+location)
}

var programRewriteCases = []filterCase{
	{name: "last", settings: rewrites("^/a/(.*)$", "/b/$1", "last"), requests: []requestCase{
		reroutes("/a/x?q=1", "/b/x?q=1"), reroutes("/a//x/../%61%20b", "/b/a%20b"),
		passes("GET http://shop.example/A/x"),
	}},
	{name: "last without a change", settings: rewrites("^", "$uri", "last"), requests: []requestCase{
		reroutes("/a?q=1", "/a?q=1"),
	}},
	{name: "no flag", settings: `{"steps": [{"rewrite": {"pattern": "^/a", "target": "/b"}},
		{"rewrite": {"pattern": "^/b", "target": "/c"}}, {"if": {"variable": "uri", "operator": "=", "value": "/c",
		"steps": [{"rewrite": {"pattern": "(.*)", "target": "$1/d"}}]}}]}`, requests: []requestCase{
		reroutes("/a", "/c/d"), reroutes("/b/x", "/c/d"), passes("GET http://shop.example/d"),
	}},
	{name: "no flag, then a return", settings: steps(`{"rewrite": {"pattern": "^/a", "target": "/b"}},
		{"return": {"status": 301, "text": "$uri", "has_text": true}}`), requests: []requestCase{
		gets("GET http://shop.example/a", "301 | Location: http://shop.example/b"),
	}},
	{name: "no flag, then break", settings: steps(`{"rewrite": {"pattern": "^/a", "target": "/b"}}, {"break": true}`),
		requests: []requestCase{rewritten("/a", "/b")}},
	{name: "break in the program of a host", settings: `{"server": true, "steps": [{"rewrite": {"pattern": "^/a",
		"target": "/b"}}, {"break": true}, {"return": {"status": 403}}]}`, requests: []requestCase{
		reroutes("/a", "/b"), passes("GET http://shop.example/c"),
	}},
	{name: "break", settings: steps(`{"rewrite": {"pattern": "^/a", "target": "/b", "flag": "break"}},
		{"return": {"status": 403}}`), requests: []requestCase{
		rewritten("/a?q=1", "/b?q=1"), gets("GET http://shop.example/b", "403"),
	}},
	{name: "the query", settings: rewrites("^/a/(.*)", "/b?a=$1", "break"), requests: []requestCase{
		rewritten("/a/1?q", "/b?a=1&q"), rewritten("/a/x%26y%20/%3F", "/b?a=x%26y%20/%3F"), rewritten("/a/", "/b?a="),
	}},
	{name: "without the query", settings: rewrites("^/a", "/b?", "break"), requests: []requestCase{
		rewritten("/a?q=1", "/b"), rewritten("/a?", "/b"),
	}},
	{name: "another query", settings: rewrites("^/a", "/b?a=$arg_q&u=$uri?", "break"), requests: []requestCase{
		rewritten("/a?q=1%0a", "/b?a=1%0a&u=/a"), rewritten("/a%20b%0d?q=\"", "/b?a=%22&u=/a%20b%0D"),
	}},
	{name: "a request URI as path", settings: rewrites("^", "/p$request_uri", "break"), requests: []requestCase{
		rewritten("/a%20b?q", "/p/a%2520b%3Fq?q"),
	}},
	{name: "no slash", settings: rewrites("^/a(.*)", "$1", "break"), requests: []requestCase{
		rewritten("/abc", "/bc"), rewritten("/a", "/"),
	}},
	{name: "dot segments", settings: rewrites("^/a/(.*)", "/files/.$1", "break"), requests: []requestCase{
		rewritten("/a/./x", "/files/.x"), gets("GET http://shop.example/a/", "400"),
		gets("GET http://shop.example/a/%2e;x", "400"),
	}},
	{name: "a path that doubles", settings: steps(
		strings.Repeat(`{"rewrite": {"pattern": "(.*)", "target": "`+strings.Repeat("$1", 50)+`"}},`, 3) +
			`{"break": true}`),
		requests: []requestCase{gets("GET http://shop.example/abcdef", "500")}},
	{name: "redirect", settings: rewrites("^(/x)$", "$1/", "redirect"), requests: []requestCase{
		redirects("/x", "http://shop.example/x/"), redirects("/x?q=1", "http://shop.example/x/?q=1"),
		passes("GET http://shop.example/x/"),
	}},
	{name: "permanent", settings: rewrites("(?s)^/a/(.*)", "/b/$1?a=$1", "permanent"), requests: []requestCase{
		gets("GET https://shop.example:8443/a/x%20%3F%0A%25?q=1",
			"301 | Location: https://shop.example:8443/b/x%20%3F%0A%25?a=x%20%3F%0A%25&q=1"),
	}},
	{name: "a URL", settings: rewrites("^/(.*)", "https://other.example/$1", ""), requests: []requestCase{
		redirects("/a?q=1", "https://other.example/a?q=1"),
	}},
	{name: "a URL with last", settings: rewrites("^", "http://other.example$uri?", "last"), requests: []requestCase{
		redirects("/a%0Ab?q=1", "http://other.example/a%0Ab"),
	}},
	{name: "scheme", settings: rewrites("^", "$scheme://other.example$request_uri?", "permanent"),
		requests: []requestCase{
			gets("GET https://shop.example/a%20b?q", "301 | Location: https://other.example/a%20b?q"),
		}},
	{name: "a group behind the host", settings: rewrites("^/(.*)", "https://other.example$1", ""),
		requests: []requestCase{
			gets("GET http://shop.example/.evil.example", "400"), redirects("/", "https://other.example"),
		}},
	{name: "a named group behind the host", settings: rewrites("^/(?<Rest>.*)", "https://other.example$rest", ""),
		requests: []requestCase{
			gets("GET http://shop.example/.evil.example", "400"), redirects("/", "https://other.example"),
		}},
	{name: "a line break in a redirect", settings: rewrites("^", "https://other.example/$http_a\\n", ""),
		requests: []requestCase{gets("GET http://shop.example/", "500")}},
	{name: "relative", settings: `{"relative_redirects": true, "steps": [
		{"rewrite": {"pattern": "^/a(.*)", "target": "/$arg_x$1?", "flag": "redirect"}}]}`, requests: []requestCase{
		redirects("/ab", "/b"), redirects("/a?x=/evil.example", "http://shop.example//evil.example"),
	}},
}
