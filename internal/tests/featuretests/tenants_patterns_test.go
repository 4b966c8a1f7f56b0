package featuretests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestTenant01Patterns checks that the regular expressions of one namespace do not affect others: expressions that
// compile to too much are rejected, and each search is limited. Ordinary expressions need far less.
func TestTenant01Patterns(t *testing.T) {
	ip, port := backend(t, "one")
	rewriting := func(name, host, path, target string) string {
		return strings.Replace(rule(name, host, "ImplementationSpecific", path, "one"), "{name: "+name+"}",
			`{name: `+name+`, annotations: {nginx.ingress.kubernetes.io/rewrite-target: "`+target+`"}}`, 1)
	}
	in := start(t, class+service("one", port, ip)+
		rule("victim", "a.example", "Prefix", "/", "one")+
		rewriting("honest", "a-regex.example", `/api(/|$)(.*)`, "/$2")+
		rewriting("large", "b.example", `/0`+strings.Repeat(`\pL{0,1000}`, 89)+"!", "/x")+
		rewriting("slow", "slow.example", `/(.*.*.*.*.*.*.*.*.*.*)*x!`, "/x"))
	if reasons := in.reasons("Ingress/default/large"); len(reasons) != 1 || reasons[0] != "InvalidRegex" {
		t.Errorf("the bomb is told %v", reasons)
	}
	in.expect("b.example", "/0"+strings.Repeat("a", 16<<10), http.StatusNotFound, "")
	in.expect("slow.example", "/"+strings.Repeat("a", 16<<10), http.StatusRequestURITooLong, "")
	in.expect("slow.example", "/aaax!", http.StatusOK, "one /x")
	in.expect("slow.example", "/aaay!", http.StatusNotFound, "")
	in.expect("a.example", "/"+strings.Repeat("a/", 8<<10), http.StatusOK, "one /"+strings.Repeat("a/", 8<<10))
	in.expect("a-regex.example", "/api/"+strings.Repeat("a", 16<<10), http.StatusOK,
		"one /"+strings.Repeat("a", 16<<10))
}

// TestTenant26Expansion checks that no text in an Ingress can turn a small request into a large amount of data by
// paths, headers or cookies.
func TestTenant26Expansion(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "a=b"+strings.Repeat("; path=/", 20_000))
		fmt.Fprint(w, len(r.RequestURI))
	})
	in := start(t, class+service("one", port, ip)+
		annotate(rule("path", "path.example", "ImplementationSpecific", "/(.*)", "one"), "rewrite-target",
			"/"+strings.Repeat("$1", 4000))+
		annotate(rule("cookie", "cookie.example", "Prefix", "/", "one"), "proxy-cookie-path", "/ /$http_x")+
		annotate(rule("hash", "hash.example", "Prefix", "/", "one"), "upstream-hash-by",
			strings.Repeat("$http_x", 100)))
	in.awaitVerdict("Ingress/default/path", "InvalidAnnotation", "4000 variables, and the limit is 64")
	in.awaitVerdict("Ingress/default/hash", "InvalidAnnotation", "100 variables, and the limit is 64")
	got := in.sendBy(in.client, in.origin("cookie.example")+"/", http.MethodGet, nil, "X: "+strings.Repeat("x", 8<<10))
	cookie := got.header.Get("Set-Cookie")
	if got.status != http.StatusOK || !strings.HasPrefix(cookie, "a=b; path=/xxx") ||
		!strings.HasSuffix(cookie, "; path=/") || len(cookie) > 1<<20 {
		t.Errorf("%d with a cookie of %d bytes", got.status, len(cookie))
	}
}
