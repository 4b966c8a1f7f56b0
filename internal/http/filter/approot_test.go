package filter_test

const noPath = "is not a path to which requests can be redirected"

var appRootCases = []filterCase{
	{name: "absolute", settings: `{"path": "/app?page=1"}`, requests: []requestCase{
		gets("GET http://shop.example/", "302 | Location: http://shop.example/app?page=1"),
		gets("POST https://shop.example:8443/?q=1", "302 | Location: https://shop.example:8443/app?page=1"),
		gets("GET /", "302 | Location: /app?page=1"),
	}},
	{name: "relative", settings: `{"path": "/app", "relative": true}`, requests: []requestCase{
		gets("GET https://shop.example/", "302 | Location: /app"),
	}},
	rejected("no path", `{}`, noPath),
	rejected("no slash", `{"path": "app"}`, noPath),
	rejected("another host", `{"path": "//evil.example"}`, noPath),
	rejected("a line break", `{"path": "/a\r\nB: c"}`, noPath),
}
