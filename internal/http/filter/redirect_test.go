package filter_test

var redirectCases = []filterCase{
	{name: "a URL", settings: `{"status_code": 301, "url": "https://www.example.com/new?a=b"}`, requests: []requestCase{
		{request: "POST http://shop.example/x?q", body: "body",
			response: "301 | Location: https://www.example.com/new?a=b"},
	}},
	{
		name:     "another host",
		settings: `{"status_code": 302, "scheme": "https", "host": "other.example"}`,
		requests: []requestCase{
			gets("GET http://shop.example/a%2Fx/?q=1", "302 | Location: https://other.example/a%2Fx/?q=1"),
			gets("GET http://shop.example:8080//x", "302 | Location: https://other.example//x"),
		},
	},
	{name: "the same URL", settings: `{"status_code": 307}`, requests: []requestCase{
		gets("GET http://shop.example:8080/a?q", "307 | Location: http://shop.example/a?q"),
		gets("GET https://shop.example/a", "307 | Location: https://shop.example/a"),
		gets("GET http://[2001:db8::1]:8080/a", "307 | Location: http://[2001:db8::1]/a"),
	}},
	{
		name: "a port", settings: `{"status_code": 301, "scheme": "https", "port": 8443, "prefix": "/"}`,
		route: at("shop.example", "prefix", "/a"),
		requests: []requestCase{
			gets("GET http://shop.example/a/x?q", "301 | Location: https://shop.example:8443/x?q"),
			gets("GET http://shop.example/a", "301 | Location: https://shop.example:8443/"),
		},
	},
	{
		name: "a port of the same scheme", settings: `{"status_code": 307, "port": 81, "target": "/{env.HOME}"}`,
		requests: []requestCase{
			gets("GET http://shop.example/a?q", "307 | Location: http://shop.example:81/%7Benv.HOME%7D?q"),
		},
	},
	{name: "the usual port", settings: `{"status_code": 307, "scheme": "http", "port": 80}`, requests: []requestCase{
		gets("GET https://shop.example/a?q", "307 | Location: http://shop.example/a?q"),
	}},
	{
		name: "groups of the path", settings: `{"status_code": 302, "target": "/new/$1"}`,
		route: at("shop.example", "regex", "/old/(.*)"),
		requests: []requestCase{
			gets("GET http://shop.example/old/a%20b?q", "302 | Location: http://shop.example/new/a%20b?q"),
		},
	},
	{name: "the first status", settings: `{"status_code": 300, "url": "https://a.example"}`, requests: []requestCase{
		gets("GET http://shop.example/", "300 | Location: https://a.example"),
	}},
	{name: "the last status", settings: `{"status_code": 399, "url": "https://a.example"}`, requests: []requestCase{
		gets("GET http://shop.example/", "399 | Location: https://a.example"),
	}},
	rejected("no status", `{"url": "https://a.example"}`, "status_code is not between"),
	rejected("no redirect", `{"status_code": 404, "url": "https://a.example"}`, "status_code is not between"),
	rejected("a line break", `{"status_code": 301, "url": "https://a.example/\r\nB: c"}`, "not allowed"),
}
