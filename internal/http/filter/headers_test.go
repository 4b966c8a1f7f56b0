package filter_test

const (
	headerChanges = `{"set": [{"name": "x-own", "value": "{env.HOME} $host"}],
		"add": [{"name": "X-More", "value": "1"}, {"name": "X-More", "value": "2"}], "remove": ["x-mine", "Cookie"]}`
	badHeader = "contains characters that are not allowed in a header"
)

var responseHeadersCases = []filterCase{
	{name: "set, add and remove", settings: headerChanges, requests: []requestCase{
		{
			request: "GET http://shop.example/ | X-Mine: a", next: same,
			backend:  "404 | X-Mine: a | X-Own: endpoint | X-Kept: yes",
			response: "404 | x-own: {env.HOME} $host | X-Kept: yes | X-More: 1 | X-More: 2",
		},
		// Errors that do not come from the backend have none of the fields.
		{request: "GET http://shop.example/", next: same, fails: 502, response: "502"},
	}},
	rejected("a name with a space", `{"add": [{"name": "X Own", "value": "1"}]}`, badHeader),
	rejected("a value with a line break", `{"add": [{"name": "X-Own", "value": "a\nB: c"}]}`, badHeader),
}

const notAStatus = "is not between 200 and 599"

var directResponseCases = []filterCase{
	{name: "a path that is closed", settings: `{"status_code": 503}`, requests: []requestCase{
		gets("GET http://shop.example/", "503"),
		{request: "POST https://shop.example/x?y", body: "body", response: "503"},
	}},
	{name: "the last status", settings: `{"status_code": 599}`, requests: []requestCase{
		gets("GET http://shop.example/", "599"),
	}},
	{name: "the first status", settings: `{"status_code": 200}`, requests: []requestCase{
		gets("GET http://shop.example/", "200"),
	}},
	rejected("no status", `{}`, notAStatus),
	rejected("an interim response", `{"status_code": 199}`, notAStatus),
	rejected("no status of HTTP", `{"status_code": 600}`, notAStatus),
}
