package featuretests

import (
	"net/http"
	"strings"
	"testing"
)

// The regular expressions of one namespace cost others nothing: what is large when it is compiled is refused, and a search has an
// end. What ordinary ones need is far below.
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
	in.expect("a-regex.example", "/api/"+strings.Repeat("a", 16<<10), http.StatusOK, "one /"+strings.Repeat("a", 16<<10))
}
