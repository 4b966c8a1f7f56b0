package filter_test

var rewriteRedirectCases = []filterCase{
	{
		name: "groups", settings: `{"target": "https://new.example/$1"}`,
		route: at("shop.example", "regex", "/old/(.*)"),
		requests: []requestCase{
			leading("http://shop.example/old/a/b?x=1", "https://new.example/a/b?x=1"),
			leading("http://shop.example/OLD/a%20%C3%A9%2fb", "https://new.example/a%20%C3%A9/b"),
			leading("http://shop.example/other", "https://new.example/"),
		},
	},
	{
		name: "variables", settings: `{"target": "$scheme://www.$host$1?"}`,
		route: at("shop.example", "regex", "/a(/.*)"),
		requests: []requestCase{
			leading("http://shop.example/a/b?x=1", "http://www.shop.example/b"),
			leading("https://shop.example:8443/a/b", "https://www.shop.example/b"),
		},
	},
	{
		name: "a group behind the host", settings: `{"target": "https://new.example$1"}`,
		route: at("shop.example", "regex", "/old(.*)"),
		requests: []requestCase{
			leading("http://shop.example/old/a", "https://new.example/a"),
			leading("http://shop.example/old?x=1", "https://new.example?x=1"),
			// Text of the client must not extend the host.
			gets("GET http://shop.example/old.evil.example", "400"),
			gets("GET http://shop.example/old@evil.example", "400"),
		},
	},
	{
		name: "named groups", settings: `{"target": "https://new.example/$rest?p=$P"}`,
		route:    at("shop.example", "regex", "/(?<p>[^/]*)/(?<Rest>.*)"),
		requests: []requestCase{leading("http://shop.example/a%26b/c%3fd", "https://new.example/c%3Fd?p=a%26b")},
	},
	{
		name: "a named group behind the host", settings: `{"target": "https://new.example${rest}?"}`,
		route: at("shop.example", "regex", "/old(?<rest>.*)"),
		requests: []requestCase{
			leading("http://shop.example/old/a", "https://new.example/a"),
			gets("GET http://shop.example/old.evil.example", "400"),
		},
	},
	{
		name: "a query", settings: `{"target": "http://new.example/find?name=$1"}`,
		route: at("shop.example", "regex", "/query/(.*)"),
		requests: []requestCase{
			leading("http://shop.example/query/a%20b%26c=d?x=1", "http://new.example/find?name=a%20b%26c=d&x=1"),
			leading("http://shop.example/query/", "http://new.example/find?name="),
		},
	},
	{
		name: "another query", settings: `{"target": "http://new.example/find?name=$1?"}`,
		route:    at("shop.example", "regex", "/query/(.*)"),
		requests: []requestCase{leading("http://shop.example/query/a?x=1", "http://new.example/find?name=a")},
	},
	{name: "the whole target", settings: `{"target": "https://new.example$request_uri"}`, requests: []requestCase{
		leading("http://shop.example/whole/a%20b?x=1", "https://new.example/whole/a%20b?x=1"),
		leading("http://shop.example/whole", "https://new.example/whole"),
	}},
	{name: "the decoded path", settings: `{"target": "https://new.example$uri"}`, requests: []requestCase{
		leading("http://shop.example/a%0d%0aSet-Cookie:x?y", "https://new.example/a%0D%0ASet-Cookie:x?y"),
	}},
	rejected("not a URL", `{"target": "/new"}`, "the target is not a URL"),
	rejected("a line break", `{"target": "https://a.example/\r\nB: c"}`, "the target is not a URL"),
	rejected("a variable of the response", `{"target": "https://a.example/$status"}`, "no variable $status"),
	rejected("a variable of the response in the query", `{"target": "https://a.example/?a=$status"}`,
		"no variable $status"),
}

// leading returns a request that is redirected.
func leading(url, location string) requestCase {
	return gets("GET "+url, "302 | Location: "+location)
}
