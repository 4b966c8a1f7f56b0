package filter_test

var programResponseCases = []filterCase{
	{name: "return a status", settings: steps(`{"return": {"status": 403}}`), requests: []requestCase{
		gets("GET /", "403"), gets("POST /a | A: b", "403"),
	}},
	{name: "return without a text", settings: steps(`{"return": {"status": 200}}`), requests: []requestCase{
		gets("GET /", "200"+htmlType),
	}},
	{name: "return an error with a text", settings: steps(`{"return": {"status": 429, "text": "a", "has_text": true}}`),
		requests: []requestCase{gets("GET /", "429"+htmlType)}},
	{name: "return a URL", settings: steps(
		`{"return": {"status": 302, "text": "https://other.example$request_uri", "has_text": true}}`),
		requests: []requestCase{redirects("/a%20b?q", "https://other.example/a%20b?q")}},
	{name: "return a path", settings: steps(`{"return": {"status": 308, "text": "/b$is_args$args", "has_text": true}}`),
		requests: []requestCase{
			gets("GET https://shop.example:8443/a?q", "308 | Location: https://shop.example:8443/b?q"),
			gets("GET /a", "308 | Location: /b"),
		}},
	{name: "return a decoded path", settings: steps(
		`{"if": {"variable": "uri", "operator": "~", "value": "(?s)^/(.*)", "steps": [
			{"return": {"status": 303, "text": "https://a.example/$1$uri", "has_text": true}}]}}`),
		requests: []requestCase{
			gets("GET /x%0Ay%20%C3%A9", "303 | Location: https://a.example/x%0Ay%20%C3%A9/x%0Ay%20%C3%A9"),
		}},
	{name: "return a URL with a line break", settings: steps(
		`{"set": {"name": "a", "value": "$uri"}}, {"return": {"status": 307, "text": "https://b.example$a"}}`),
		requests: []requestCase{
			gets("GET /x%0d%0aA:b", "500"), gets("GET /x%7F", "500"),
			gets("GET /x", "307 | Location: https://b.example/x"),
		}},
	{name: "return no URL", settings: steps(`{"return": {"status": 301}}`),
		requests: []requestCase{gets("GET /", "301 | Location: ")}},
	{name: "default type", settings: `{"steps": [` + answers("a") + `], "default_type": "text/plain"}`,
		requests: []requestCase{
			gets("GET /", "200 | Content-Type: text/plain"),
			gets("GET /a.JSON", "200 | Content-Type: application/json"),
		}},
	{name: "default type of a condition", settings: `{"steps": [
		{"if": {"variable": "uri", "directives": {"default_type": "text/plain"}, "steps": [` + answers("a") + `]}}]}`,
		requests: []requestCase{gets("GET /", "200 | Content-Type: text/plain")}},
	{name: "close", settings: steps(`{"return": {"status": 444}}`), requests: []requestCase{
		{request: "GET /", next: aborted, response: "none"},
	}},
	{name: "a text with the status of close", settings: steps(
		`{"return": {"status": 444, "text": "a", "has_text": true}}`),
		requests: []requestCase{gets("GET /", "444"+htmlType)}},
	{name: "responses have the headers of the program", settings: `{"steps": [{"return": {"status": 404}}],
		"add_headers": [{"name": "A", "value": "a"}, {"name": "B", "value": "b", "always": true}],
		"more_headers": [{"set": [{"name": "C", "value": "$status"}]}], "expires": {"mode": "epoch"}}`,
		requests: []requestCase{gets("GET /", "404 | C: 404 | B: b")}},
}
