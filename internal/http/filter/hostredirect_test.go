package filter_test

const noHostRedirect = "do not define a redirect"

var hostRedirectCases = []filterCase{
	{name: "www", settings: `{"status_code": 308, "host": "www.shop.example"}`, requests: []requestCase{
		gets("GET http://shop.example/", "308 | Location: http://www.shop.example"),
		gets("GET http://shop.example/a/", "308 | Location: http://www.shop.example/a"),
		gets("GET https://shop.example:8443/a%2Fb?q=1", "308 | Location: https://www.shop.example:8443/a%2Fb?q=1"),
		// As in ingress-nginx, the slash may belong to the query.
		gets("POST http://shop.example/a/?q=1/", "308 | Location: http://www.shop.example/a/?q=1"),
	}},
	{name: "the first status", settings: `{"status_code": 300, "host": "a.example"}`, requests: []requestCase{
		gets("GET http://shop.example/", "300 | Location: http://a.example"),
	}},
	{name: "the last status", settings: `{"status_code": 399, "host": "a.example"}`, requests: []requestCase{
		gets("GET http://shop.example/", "399 | Location: http://a.example"),
	}},
	rejected("no status", `{"host": "www.shop.example"}`, noHostRedirect),
	rejected("no redirect", `{"status_code": 200, "host": "www.shop.example"}`, noHostRedirect),
	rejected("a path", `{"status_code": 308, "host": "a.example\r\nB: c"}`, noHostRedirect),
}
