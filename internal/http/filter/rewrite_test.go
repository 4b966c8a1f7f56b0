package filter_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

var rewriteCases = []filterCase{
	{name: "a path", settings: `{"target": "/new"}`, requests: []requestCase{
		rewritten("/a/x?q=1", "/new?q=1"), rewritten("/?", "/new"), rewritten("/a", "/new"),
	}},
	{name: "no slash", settings: `{"target": "new"}`, requests: []requestCase{rewritten("/a", "/new")}},
	{name: "a query", settings: `{"target": "/new?a=b"}`, requests: []requestCase{
		rewritten("/a", "/new?a=b"), rewritten("/a?q=1", "/new?a=b&q=1"),
	}},
	{name: "without the query", settings: `{"target": "/new?"}`, requests: []requestCase{rewritten("/a?q=1", "/new")}},
	{name: "a query in place of the client's", settings: `{"target": "/new?a=b?"}`, requests: []requestCase{
		rewritten("/a?q=1", "/new?a=b"),
	}},
	{name: "a placeholder is text", settings: `{"target": "/{env.HOME}$host$"}`, requests: []requestCase{
		rewritten("/a", "/%7Benv.HOME%7D$host$"),
	}},
	{
		name: "groups", settings: `{"target": "/$2/$1?name=$1&none=$3"}`,
		route: at("shop.example", "regex", "/old/([^/]*)/(.*)"),
		requests: []requestCase{
			rewritten("/old/a/b?q=1", "/b/a?name=a&none=&q=1"),
			rewritten("/OLD//./a/b/c", "/b/c/a?name=a&none="),
			// Text from the path cannot end the path or add arguments to the query.
			rewritten("/old/a%3F%26%20/%25b", "/%25b/a%3F&%20?name=a%3F%26%20&none="),
		},
	},
	{
		name: "named groups", settings: `{"target": "/$Name${id}/$2$names${id/$nothing?id=$ID"}`,
		route: at("shop.example", "regex", "/old/(?<id>[^/]*)/(?P<Name>.*)"),
		requests: []requestCase{
			rewritten("/old/1/b", "/b1/b$names$%7Bid/$nothing?id=1"),
		},
	},
	{
		name: "the whole path", settings: `{"target": "$1?$1"}`, route: at("shop.example", "regex", "(/.*)"),
		requests: []requestCase{rewritten("/a", "/a?/a")},
	},
	{
		name: "nine groups", settings: `{"target": "/$9$8$7$6$5$4$3$2$1$0"}`,
		route:    at("shop.example", "regex", "/(.)(.)(.)(.)(.)(.)(.)(.)(.)"),
		requests: []requestCase{rewritten("/abcdefghi", "/ihgfedcba$0")},
	},
	{
		name: "an empty group", settings: `{"target": "/new$2"}`, route: at("shop.example", "regex", "/old(/(.*))?"),
		requests: []requestCase{rewritten("/old", "/new"), rewritten("/old/x", "/newx")},
	},
	{
		name: "a group that leaves the path", settings: `{"target": "/files/.$1"}`,
		route: at("shop.example", "regex", "/old/(.*)"),
		requests: []requestCase{
			rewritten("/old/a", "/files/.a"), rewritten("/old/./secret", "/files/.secret"),
			rewritten("/old/.%2Fsecret", "/files/.secret"), gets("GET http://shop.example/old/", "400"),
			gets("GET http://shop.example/old/./", "400"),
		},
	},
	{
		name: "a prefix", settings: `{"prefix": "/b/c"}`, route: at("shop.example", "prefix", "/a"),
		requests: []requestCase{
			rewritten("/a/x?q", "/b/c/x?q"), rewritten("/a", "/b/c"), rewritten("/a/", "/b/c/"),
			rewritten("//a//x", "/b/c/x"),
		},
	},
	{
		name: "a prefix with a slash", settings: `{"prefix": "/b/"}`, route: at("shop.example", "prefix", "/a/"),
		requests: []requestCase{rewritten("/a/x", "/b/x"), rewritten("/a", "/b")},
	},
	{name: "no prefix", settings: `{"prefix": "/"}`, route: at("shop.example", "prefix", "/a"), requests: []requestCase{
		rewritten("/a/x%20y", "/x%20y"), rewritten("/a", "/"),
	}},
	{
		name: "an exact path has no prefix", settings: `{"prefix": "/b"}`, route: at("shop.example", "exact", "/a"),
		requests: []requestCase{rewritten("/a", "/a")},
	},
	{name: "a host", settings: `{"host": "other.example"}`, requests: []requestCase{
		{request: "GET https://shop.example:81/a//%2e?q", next: "GET https://other.example/a//%2e?q", response: "200"},
	}},
	{name: "nothing", settings: `{}`, requests: []requestCase{
		passes("GET http://shop.example/a/../b?q"),
	}},
}

// rewritten returns a request that reaches the backend with another path and query.
func rewritten(target, next string) requestCase {
	const shop = "GET http://shop.example"
	return requestCase{request: shop + target, next: shop + next, response: "200"}
}

// TestRewriteKeepsTheClientsHost checks that the header fields about the client contain the host that it requested, and
// not the host for the backend.
func TestRewriteKeepsTheClientsHost(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example:8080/")
	f := newEnvironment(t).newFilter(t, "k8singress_rewrite", `{"host": "other.example"}`)
	if responded, err := f.Apply(x); responded || err != nil {
		t.Fatal(responded, err)
	}
	if host := x.Client().Host; x.Host != "other.example" || host != "shop.example:8080" {
		t.Errorf("the backend gets the host %s, and X-Forwarded-Host %s", x.Host, host)
	}
}
