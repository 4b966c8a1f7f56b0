package filter_test

// corsFields are the fields, besides Access-Control-Allow-Origin, of the first case below.
const corsFields = " | Access-Control-Allow-Credentials: true | Access-Control-Allow-Methods: GET, PUT" +
	" | Access-Control-Allow-Headers: X-Token | Access-Control-Expose-Headers: X-Total | Access-Control-Max-Age: 5"

var corsCases = []filterCase{
	{
		name: "some origins",
		settings: `{"origins": ["https://a.example", "https://*.b.example:8443", "null"], "methods": "GET, PUT",
			"headers": "X-Token", "expose": "X-Total", "credentials": true, "max_age": 5}`,
		requests: []requestCase{
			{
				request: "GET http://shop.example/ | Origin: https://a.example", next: same,
				backend: "200 | Access-Control-Allow-Origin: * | X-Own: endpoint",
				response: "200 | Access-Control-Allow-Origin: https://a.example | X-Own: endpoint" + corsFields +
					" | Vary: Origin",
			},
			{
				request:  "OPTIONS http://shop.example/ | Origin: HTTPS://A.Example",
				response: "204 | Content-Type: text/plain charset=UTF-8" + allowed("HTTPS://A.Example"),
			},
			{
				request: "GET http://shop.example/ | Origin: https://a.example", next: same, fails: 503,
				response: "503" + allowed("https://a.example"),
			},
			{
				request: "GET http://shop.example/ | Origin: https://x-09az.b.example:8443", next: same,
				response: "200" + allowed("https://x-09az.b.example:8443"),
			},
			{request: "GET http://shop.example/ | Origin: null", next: same, response: "200" + allowed("null")},
			// Caches must know that another client may get another response.
			{request: "GET http://shop.example/", next: same, response: "200 | Vary: Origin"},
			{request: "OPTIONS http://shop.example/", next: same, response: "200 | Vary: Origin"},
			refusedOrigin("http://a.example"), refusedOrigin("https://a.example.evil.example"),
			refusedOrigin("https://a.example:8443"), refusedOrigin("https://b.example:8443"),
			refusedOrigin("https://.b.example:8443"), refusedOrigin("https://x.b.example"),
			refusedOrigin("https://x.y.b.example:8443"), refusedOrigin("https://x_y.b.example:8443"),
			refusedOrigin("https://x.b.example:8443.evil.example"), refusedOrigin("https://x"),
			refusedOrigin("x.b.example:8443"),
			refusedOrigin("https://evil.example/x.b.example:8443"),
		},
	},
	{name: "all origins", settings: `{"origins": ["*"], "max_age": 1728000}`, requests: []requestCase{
		{
			request: "GET http://shop.example/ | Origin: https://a.example", next: same,
			response: "200 | Access-Control-Allow-Origin: * | Access-Control-Max-Age: 1728000",
		},
		{
			request: "GET http://shop.example/", next: same, fails: 404,
			response: "404 | Access-Control-Allow-Origin: * | Access-Control-Max-Age: 1728000",
		},
		{
			request: "OPTIONS http://shop.example/",
			response: "204 | Content-Type: text/plain charset=UTF-8 | Access-Control-Allow-Origin: *" +
				" | Access-Control-Max-Age: 1728000",
		},
	}},
	{name: "no origin", settings: `{"max_age": 5}`, requests: []requestCase{
		{request: "OPTIONS http://shop.example/ | Origin: null", next: same, response: "200 | Vary: Origin"},
	}},
	rejected("a line break", `{"origins": ["*"], "methods": "GET\r\nX: y"}`, "Access-Control-Allow-Methods: "),
	rejected("a control character", `{"origins": ["*"], "expose": "X\u0000"}`, "Access-Control-Expose-Headers: "),
}

// allowed returns the fields of a response to an origin that the first case allows.
func allowed(origin string) string {
	return " | Access-Control-Allow-Origin: " + origin + corsFields + " | Vary: Origin"
}

// refusedOrigin returns a preflight of an origin that the first case does not allow. The backend gets it.
func refusedOrigin(origin string) requestCase {
	return requestCase{request: "OPTIONS http://shop.example/ | Origin: " + origin, next: same,
		response: "200 | Vary: Origin"}
}
