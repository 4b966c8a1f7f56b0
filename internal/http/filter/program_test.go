package filter_test

import (
	"slices"
	"strings"
)

// programCases are in several files by concern.
var programCases = slices.Concat(programStepCases, programRewriteCases, programResponseCases, programHeaderCases,
	invalidPrograms)

// steps returns the settings of a program with these steps.
func steps(list string) string { return `{"steps": [` + list + `]}` }

// answers returns a step that returns the text with status 200.
func answers(text string) string {
	return `{"return": {"status": 200, "text": "` + text + `", "has_text": true}}`
}

// htmlType is the header field of a text without a default type.
const htmlType = " | Content-Type: text/html"

// says returns a request, and the text of the response of the program in a header field.
func says(request, text string) requestCase {
	response := "204"
	if text != "" {
		response += " | X: " + text
	}
	return gets("GET http://shop.example"+request, response)
}

// saying returns the settings of a program with these steps, which then responds with the value of a template in the
// header field X.
func saying(list, template string) string {
	if list != "" {
		list += ","
	}
	return `{"steps": [` + list + `{"return": {"status": 204}}],
		"add_headers": [{"name": "X", "value": "` + template + `"}]}`
}

// saysIf returns the settings of a program that responds with "yes" in the field X if the condition is true.
func saysIf(condition string) string {
	return saying(`{"set": {"name": "r", "value": "no"}}, {"if": {`+condition+
		`, "steps": [{"set": {"name": "r", "value": "yes"}}]}}`, "$r")
}

var programStepCases = []filterCase{
	{name: "nothing", settings: `{}`, requests: []requestCase{passes("GET http://shop.example/a?q=1 | A: b")}},
	{name: "other methods are limited before the steps", settings: `{"limit_except": {"methods": ["GET", "HEAD"],
		"rules": [{"allow": true, "network": "192.0.2.1/32"}, {"network": "all"}]}, "add_headers":
		[{"name": "X", "value": "$request_method", "always": true}], "steps": [{"return": {"status": 204}}]}`,
		requests: []requestCase{
			gets("GET http://shop.example/", "204 | X: GET"), gets("HEAD http://shop.example/", "204 | X: HEAD"),
			{client: "192.0.2.1", request: "PUT http://shop.example/", response: "204 | X: PUT"},
			{client: "192.0.2.2", request: "PUT http://shop.example/", response: "403 | X: PUT"},
			{client: "192.0.2.2", request: "get http://shop.example/", response: "403 | X: get"},
		}},
	{name: "only a limit", settings: `{"limit_except": {"methods": ["GET"], "rules": [{"network": "all"}]}}`,
		requests: []requestCase{
			passes("GET http://shop.example/ | X-HTTP-Method-Override: POST"),
			gets("POST http://shop.example/ | X-HTTP-Method-Override: GET", "403"),
		}},
	rejected("a limit without a network", `{"limit_except": {"rules": [{}]}}`, `"" is not a network`),
	{name: "set", settings: saying(`{"set": {"name": "a", "value": "$arg_a-"}},
		{"set": {"name": "a", "value": "$a${a}x"}}`, "<$a>$b"), requests: []requestCase{
		says("/?a=1", "<1-1-x>"), says("/", "<--x>"), says("/?a=$host", "<$host-$host-x>"),
	}},
	{name: "set args", settings: steps(`{"set": {"name": "args", "value": "a=$arg_b \n"}}`), requests: []requestCase{
		rewritten("/?b=1&c=2", "/?a=1%20%0A"),
	}},
	{name: "unset args", settings: steps(`{"set": {"name": "args", "value": ""}}`), requests: []requestCase{
		rewritten("/a?b=1&c=2", "/a"), rewritten("/a?", "/a"),
	}},
	{name: "a variable alone", settings: saysIf(`"variable": "arg_a"`), requests: []requestCase{
		says("/?a=1", "yes"), says("/?a=00", "yes"), says("/?a=0", "no"), says("/?a=", "no"), says("/", "no"),
	}},
	{name: "equal", settings: saysIf(`"variable": "arg_a", "operator": "=", "value": "$arg_b"`),
		requests: []requestCase{says("/?a=1&b=1", "yes"), says("/?a=x&b=X", "no"), says("/", "yes")}},
	{name: "not equal", settings: saysIf(`"variable": "arg_a", "operator": "!=", "value": "b"`),
		requests: []requestCase{says("/?a=b", "no"), says("/?a=B", "yes"), says("/", "yes")}},
	{name: "matches", settings: saysIf(`"variable": "uri", "operator": "~", "value": "^/a"`), requests: []requestCase{
		says("/a", "yes"), says("/b/../%61", "yes"), says("//a", "yes"), says("/A", "no"), says("/b", "no"),
	}},
	{name: "matches in any case", settings: saysIf(`"variable": "http_user_agent", "operator": "~*", "value": "bot"`),
		requests: []requestCase{says("/ | User-Agent: A Bot", "yes"), says("/", "no")}},
	{name: "does not match", settings: saysIf(`"variable": "uri", "operator": "!~", "value": "^/a"`),
		requests: []requestCase{says("/a", "no"), says("/A", "yes")}},
	{name: "does not match in any case", settings: saysIf(`"variable": "uri", "operator": "!~*", "value": "^/a"`),
		requests: []requestCase{says("/A", "no"), says("/b", "yes")}},
	{name: "groups", settings: saying(
		`{"if": {"variable": "uri", "operator": "~", "value": "^/(a+)(b)?", "steps": []}},
		{"if": {"variable": "host", "operator": "~", "value": "^nothing(.)"}}`, "$1,$2,$3"),
		requests: []requestCase{says("/aab", "aa,b,"), says("/a", "a,,"), says("/", ",,")}},
	{name: "an expression without groups", settings: saying(
		`{"if": {"variable": "uri", "operator": "~", "value": "^/(a+)"}},
		{"if": {"variable": "host", "operator": "~", "value": "^shop"}}`, "<$1>"),
		requests: []requestCase{says("/aa", "<>")}},
	{name: "named groups", settings: saying(
		`{"if": {"variable": "uri", "operator": "~", "value": "^/(?<first>a+)(?P<second>b)?"}},
		{"if": {"variable": "host", "operator": "~", "value": "^shop"}}`, "$first,$second,$1"),
		requests: []requestCase{says("/aab", "aa,b,"), says("/", ",,")}},
	{name: "named groups only", settings: saying(
		`{"if": {"variable": "uri", "operator": "~", "value": "^/(?<first>a+)"}}`, "<$first>"),
		requests: []requestCase{says("/aab", "<aa>"), says("/", "<>")}},
	{name: "groups of the route", settings: saying("", "<$1>"), route: at("shop.example", "regex", "/x/([^/]+)"),
		requests: []requestCase{says("/x/y/z", "<y>"), says("/X//%61", "<a>")}},
	{name: "break", settings: steps(`{"break": true}, {"return": {"status": 403}}`), requests: []requestCase{
		passes("GET http://shop.example/"),
	}},
	{name: "break in a condition", settings: steps(
		`{"if": {"variable": "arg_a", "steps": [{"break": true}]}}, {"return": {"status": 403}}`),
		requests: []requestCase{passes("GET http://shop.example/?a=1"), gets("GET http://shop.example/", "403")}},
	{name: "the last true condition", settings: `{"steps": [
		{"if": {"variable": "arg_a", "directives": {"add_headers": [{"name": "X", "value": "a"}]}}},
		{"if": {"variable": "arg_b", "directives": {"add_headers": [{"name": "X", "value": "b"}]}}},
		{"if": {"variable": "arg_c"}},
		{"if": {"variable": "arg_d", "directives": {}}}], "add_headers": [{"name": "X", "value": "top"}]}`,
		requests: []requestCase{
			{request: "GET /", next: same, response: "200 | X: top"},
			{request: "GET /?a=1", next: same, response: "200 | X: a"},
			{request: "GET /?a=1&b=1", next: same, response: "200 | X: b"},
			{request: "GET /?a=1&b=1&c=1", next: same, response: "200 | X: top"},
			{request: "GET /?a=1&d=1", next: same, response: "200"},
		}},
	{name: "a value that doubles", settings: steps(
		`{"set": {"name": "a", "value": "` + string(make16()) + `"}},` + doubling(20)),
		requests: []requestCase{gets("GET /", "500")}},
	{name: "comparisons with a long value", settings: steps(
		`{"set": {"name": "a", "value": "` + string(slices.Repeat(make16(), 256)) + `"}}` +
			strings.Repeat(`, {"if": {"variable": "a", "operator": "=", "value": "$a-$a-$a"}}`, 100)),
		requests: []requestCase{gets("GET /", "500")}},
	{name: "a search that takes too long", settings: steps(
		`{"if": {"variable": "http_a", "operator": "!~", "value": ".*.*.*.*.*.*.*.*.*.*.*.*.*.*.*x!", "steps": []}}`),
		requests: []requestCase{
			gets("GET / | A: "+string(slices.Repeat([]byte("a"), 20_000)), "400"), passes("GET / | A: a"),
		}},
}

func make16() []byte { return slices.Repeat([]byte("x"), 16) }

// doubling returns n steps that double the value of $a.
func doubling(n int) string {
	all := slices.Repeat([]byte(`,{"set": {"name": "a", "value": "$a$a"}}`), n)
	return string(all[1:])
}

var invalidPrograms = []filterCase{
	rejected("an empty step", steps(`{}`), "empty"),
	rejected("set a variable of nginx", steps(`{"set": {"name": "host", "value": ""}}`), "cannot set"),
	rejected("set a header", steps(`{"set": {"name": "http_a", "value": ""}}`), "cannot set"),
	rejected("set no name", steps(`{"set": {"name": "a b", "value": ""}}`), "cannot set"),
	rejected("a group with the name of a variable",
		steps(`{"if": {"variable": "uri", "operator": "~", "value": "(?<host>.)"}}`), "cannot set"),
	rejected("an operator", steps(`{"if": {"variable": "uri", "operator": "<", "value": ""}}`), "unknown operator"),
	rejected("no variable", steps(`{"if": {"variable": "", "steps": []}}`), "no variable"),
	rejected("an expression", steps(`{"if": {"variable": "uri", "operator": "~", "value": "("}}`), "RE2"),
	rejected("a template", steps(`{"set": {"name": "a", "value": "${b"}}`), "closing brace"),
	rejected("a template in a condition", steps(`{"if": {"variable": "uri", "operator": "=", "value": "$"}}`), "$"),
	rejected("a status", steps(`{"return": {"status": 199}}`), "status"),
	rejected("a text", steps(`{"return": {"status": 200, "text": "$", "has_text": true}}`), "$"),
	rejected("a pattern", steps(`{"rewrite": {"pattern": "(", "target": "/"}}`), "RE2"),
	rejected("a flag", steps(`{"rewrite": {"pattern": ".", "target": "/", "flag": "first"}}`), "flag"),
	rejected("a path", steps(`{"rewrite": {"pattern": ".", "target": "/$"}}`), "$"),
	rejected("a query", steps(`{"rewrite": {"pattern": ".", "target": "/?$"}}`), "$"),
	rejected("a step in a condition", steps(`{"if": {"variable": "a", "steps": [{}]}}`), "empty"),
	rejected("a default type", `{"default_type": "a\nb"}`, "default type"),
	rejected("an endpoint header", `{"endpoint_headers": [{"name": "Connection", "value": "a"}]}`, "Connection"),
	rejected("the value of an endpoint header", `{"endpoint_headers": [{"name": "A", "value": "$"}]}`, "$"),
	rejected("an added header", `{"add_headers": [{"name": "A:", "value": "a"}]}`, "A:"),
	rejected("the value of an added header", `{"add_headers": [{"name": "A", "value": "$"}]}`, "$"),
	rejected("a response header", `{"more_headers": [{"set": [{"name": "Content-Length", "value": "1"}]}]}`, "Length"),
	rejected("the value of a response header", `{"more_headers": [{"set": [{"name": "A", "value": "$"}]}]}`, "$"),
	rejected("the host of a response", `{"more_headers": [{"set": [{"name": "Host", "value": "a"}]}]}`, "Host"),
	rejected("a removed header", `{"more_headers": [{"clear": ["A B"]}]}`, "A B"),
	rejected("a request header", `{"input_headers": [{"set": [{"name": "Upgrade", "value": "a"}]}]}`, "Upgrade"),
	rejected("expires", `{"expires": {"mode": "never"}}`, "never"),
	rejected("a variable of expires", `{"expires": {"template": "$"}}`, "$"),
	rejected("expires in a condition",
		steps(`{"if": {"variable": "a", "directives": {"expires": {"mode": "never"}}}}`), "never"),
	rejected("a variable of authentication", `{"auth_variables": [{"name": "uri", "value": "a"}]}`, "cannot set"),
	rejected("its value", `{"auth_variables": [{"name": "a", "value": "$"}]}`, "$"),
}
