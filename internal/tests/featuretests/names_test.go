package featuretests

import (
	"net/http"
	"testing"
)

// TestServerAlias checks that a host behaves the same under its aliases as under its name, and that a rule takes
// precedence over an alias.
func TestServerAlias(t *testing.T) {
	one, port1 := backend(t, "one")
	two, port2 := backend(t, "two")
	in := start(t, class+service("one", port1, one)+service("two", port2, two)+
		withTLS(annotate(rule("main", "a.example", "Prefix", "/app", "one"), "app-root", "/app",
			"ssl-redirect", "false",
			"server-alias", `B.example, *.wild.example, ~^n[0-9]+\.example$, other.example, bad_name`),
			"a.example", "tls")+
		annotate(rule("admin", "a.example", "Prefix", "/app/admin", "one"), "denylist-source-range", "0.0.0.0/0,::/0",
			"ssl-redirect", "false")+
		rule("other", "other.example", "Prefix", "/", "two")+rule("below", "x.wild.example", "Prefix", "/", "two")+
		rule("number", "n7.example", "Prefix", "/", "two")+only("rest", "two"))
	in.write("secret.yaml", secret(t, "tls", "both", "*.example"))
	in.showsCertificate("a.example", "both")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, host := range []string{"a.example", "b.example", "y.wild.example", "z.y.wild.example", "n12.example"} {
			in.expect(host, "/app", http.StatusOK, "one /app")
			in.expect(host, "/app/admin", http.StatusForbidden, "")
			in.leads(t, host, "/", http.StatusFound, in.origin(host)+"/app")
		}
		for _, host := range []string{"other.example", "x.wild.example", "n7.example", "nx.example", "wild.example"} {
			in.expect(host, "/app", http.StatusOK, "two /app")
		}
	})
	in.showsCertificate("b.example", "both")
	in.write("taken.yaml", rule("taken", "b.example", "Prefix", "/", "two"))
	in.becomes("b.example", "/app", http.StatusOK, "two /app")
	in.remove("taken.yaml")
	in.becomes("b.example", "/app", http.StatusOK, "one /app")
}

// TestFromToWWW checks the redirects between a name with www. and the name without it, in both directions, unless a
// rule has the name. One slash at the end of the URL is removed.
func TestFromToWWW(t *testing.T) {
	ip, port := backend(t, "one")
	www := func(name, host string) string {
		return annotate(rule(name, host, "Prefix", "/", "one"), "from-to-www-redirect", "true")
	}
	in := start(t, class+service("one", port, ip)+www("to", "a.example")+www("from", "www.b.example")+
		www("both", "c.example")+
		rule("has", "www.c.example", "Prefix", "/", "one"))
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		in.leads(t, "www.a.example", "/x/?y=1", http.StatusPermanentRedirect, in.origin("a.example")+"/x/?y=1")
		in.leads(t, "www.a.example", "/dir/", http.StatusPermanentRedirect, in.origin("a.example")+"/dir")
		in.leads(t, "www.a.example", "/dir//", http.StatusPermanentRedirect, in.origin("a.example")+"/dir/")
		in.leads(t, "www.a.example", "/", http.StatusPermanentRedirect, in.origin("a.example"))
		in.leads(t, "www.a.example", "/x?y=/", http.StatusPermanentRedirect, in.origin("a.example")+"/x?y=")
		in.leads(t, "www.a.example:8443", "/", http.StatusPermanentRedirect, in.origin("a.example:8443"))
		in.leads(t, "www.a.example:8443", "/dir/", http.StatusPermanentRedirect, in.origin("a.example:8443")+"/dir")
		in.leads(t, "b.example", "/%2Fx", http.StatusPermanentRedirect, in.origin("www.b.example")+"/%2Fx")
		in.expect("a.example", "/", http.StatusOK, "one /")
		in.expect("www.c.example", "/", http.StatusOK, "one /")
		in.expect("www.www.c.example", "/", http.StatusNotFound, "")
	})
	in.write("more.yaml", rule("more", "www.a.example", "Prefix", "/", "one"))
	in.becomes("www.a.example", "/", http.StatusOK, "one /")
	in.remove("more.yaml")
	in.becomes("www.a.example", "/", http.StatusPermanentRedirect, "")
}

// TestTenantNames checks that aliases and redirects take nothing from another namespace, whichever is older: no host,
// no name that its wildcard or its rule for every host serves, and no host reserved by host_owner.
func TestTenantNames(t *testing.T) {
	in := start(t, rivals(t)+tenant("a", 1, rule("main", "main.example", "Prefix", "/", "one"))+tenant("a", 10,
		rule("www", "www.b.example", "Prefix", "/", "one"),
		rule("wild", "*.wild.example", "Prefix", "/", "one"), only("rest", "one")),
		"host_owner *.kept.example a")
	for _, age := range []int{20, 5} {
		in.attacks(age,
			annotate(rule("names", "b.example", "Prefix", "/b", "one"), "from-to-www-redirect", "true", "server-alias",
				"main.example, x.wild.example, *.wild.example, ~.*, x.kept.example, *.example, free.example"),
			annotate(rule("guest", "main.example", "Prefix", "/guest", "one"), "server-alias", "guest.example",
				"app-root", "/guest"))
		for _, host := range []string{
			"main.example", "www.b.example", "x.wild.example", "y.x.wild.example", "nobody.example", "x.kept.example",
			"deep.x.kept.example",
			"guest.example",
		} {
			in.expect(host, "/", http.StatusOK, "A /")
		}
		in.expect("free.example", "/b", http.StatusOK, "B /b")
		in.expectConflict("Ingress/b/names", "a rule of Ingress/a/main names this host")
		in.expectConflict("Ingress/b/names", "host_owner reserves *.kept.example")
		in.expectConflict("Ingress/b/names", "Ingress/a/rest in another namespace owns every host")
	}
}
