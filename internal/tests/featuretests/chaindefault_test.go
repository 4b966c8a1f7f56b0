package featuretests

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// keyChain defines a chain that rejects requests without the header in withKey, and another chain. Both add their names
// to a response header when they run.
const (
	keyChain = `chain keyed {
	header +X-Ran keyed
	@stranger not header X-Key secret
	error @stranger 401
}
chain other {
	header +X-Ran other
}
`
	withKey = "X-Key: secret"
)

// expectGuarded checks that a request for a path gets 401, and with the key this status and body, after one run of
// the default chain.
func (in *ingress) expectGuarded(host, path string, status int, body string) {
	in.Helper()
	if got := in.fetch(in.client, in.origin(host)+path); got.status != http.StatusUnauthorized || got.body != "" {
		in.Errorf("%s%s without the key: %d %q", host, path, got.status, got.body)
	}
	got := in.fetch(in.client, in.origin(host)+path, withKey)
	if got.status != status || got.body != body || !slices.Equal(got.header["X-Ran"], []string{"keyed"}) {
		in.Errorf("%s%s: %d %q after %v, want %d %q", host, path, got.status, got.body, got.header["X-Ran"], status,
			body)
	}
}

// TestDefaultChain checks that no request reaches an endpoint, or gets a response of an Ingress, without passing the
// default chain, whatever the annotations and snippets of the namespace contain.
func TestDefaultChain(t *testing.T) {
	const snippet = "location /static { return 200 static; }\nlocation /two { proxy_pass http://one; }\n" +
		"location @named { return 200 named; }\nif ($http_x_direct) { return 200 direct; }"
	ask := "k8singress.io/chains"
	in := start(t, rivals(t)+allowingSnippets()+
		tenant("a", 1,
			annotate(rule("plain", "plain.example", "Prefix", "/", "one"), "custom-http-errors", "401",
				"satisfy", "any", "denylist-source-range", "192.0.2.0/24"),
			annotate(rule("asks", "asks.example", "Prefix", "/", "one"), ask, "keyed,other"),
			annotate(rule("root", "root.example", "Prefix", "/app", "one"), "app-root", "/app"),
			annotate(rule("cors", "cors.example", "Prefix", "/", "one"), "enable-cors", "true", "permanent-redirect",
				"https://new.example/"),
			annotate(rule("www", "name.example", "Prefix", "/", "one"), "from-to-www-redirect", "true",
				"server-alias", "alias.example"),
			annotate(rule("served", "served.example", "Prefix", "/app", "one"), "server-snippet", snippet),
			annotate(rule("last", "served.example", "Prefix", "/last", "one"), "configuration-snippet",
				"rewrite ^/last/(.*) /app/$1 last;"),
			annotate(rule("named", "served.example", "Prefix", "/named", "one"), "configuration-snippet",
				"error_page 404 = @named; return 404;"),
			strings.Replace(rule("behind", "behind.example", "Exact", "/never", "one"), "  rules:",
				"  defaultBackend: {service: {name: one, port: {number: 80}}}\n  rules:", 1),
			annotate(rule("canary", "plain.example", "Prefix", "/", "two"), "canary", "true", "canary-by-header",
				"X-Canary"),
			service("two", "1")),
		"chain_default keyed", keyChain, "configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct {
			host, path string
			status     int
			body       string
		}{
			{"plain.example", "/x", 200, "A /x"}, {"root.example", "/", 302, ""},
			{"root.example", "/app", 200, "A /app"},
			{"cors.example", "/", 301, ""}, {"www.name.example", "/", 308, ""}, {"alias.example", "/x", 200, "A /x"},
			{"served.example", "/app", 200, "A /app"}, {"served.example", "/static", 200, "static"},
			{"served.example", "/two", 200, "A /two"}, {"served.example", "/last/x", 200, "A /app/x"},
			{"served.example", "/named", 200, "named"}, {"behind.example", "/other", 200, "A /other"},
		} {
			in.expectGuarded(c.host, c.path, c.status, c.body)
		}
		if got := in.fetch(in.client, in.origin("asks.example")+"/", withKey); got.status != http.StatusOK ||
			!slices.Equal(got.header["X-Ran"], []string{"keyed", "other"}) {
			t.Errorf("a chain that is default and asked for: %d after %v", got.status, got.header["X-Ran"])
		}
		headers := map[string]string{"served.example": "X-Direct: 1", "plain.example": "X-Canary: always"}
		for host, header := range headers {
			if got := in.fetch(in.client, in.origin(host)+"/app", header); got.status != http.StatusUnauthorized {
				t.Errorf("%s with %s: %d %q", host, header, got.status, got.body)
			}
		}
		// No Ingress serves these paths.
		in.expect("root.example", "/none", http.StatusNotFound, "")
		in.expect("none.example", "/", http.StatusNotFound, "")
	})
}

// TestDefaultChainSelection checks which Ingresses a default chain guards, also if a rewrite or an error page of
// another namespace leads to them, and that a canary of another class does not get around it.
func TestDefaultChainSelection(t *testing.T) {
	const edge = `---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: edge}
spec: {controller: k8s.io/ingress-nginx}
`
	ofEdge := func(manifest string) string {
		return strings.Replace(manifest, "ClassName: nginx", "ClassName: edge", 1)
	}
	host := func(namespace string) string {
		return tenant(namespace, 1, rule("one", namespace+".example", "Prefix", "/", "one"))
	}
	to := func(path, snippet string) string {
		return annotate(rule(path[1:], "team-a.example", "Prefix", path, "one"), "configuration-snippet", snippet)
	}
	ip, port := backend(t, "one")
	in := start(t, class+edge+allowingSnippets()+
		elsewhere("team-a", service("one", port, ip)+service("two", port, ip))+
		elsewhere("team-free", service("one", port, ip))+elsewhere("b", service("one", port, ip))+
		host("team-a")+host("team-free")+host("b")+
		tenant("team-a", 2, ofEdge(rule("edge", "edge.example", "Prefix", "/", "one")), ofEdge(
			annotated("canary", "team-a.example", "two", "canary", "true", "canary-weight", "100")))+
		tenant("b", 3, to("/last", "rewrite ^/last/(.*) /a/$1 last;"), to("/page", "error_page 404 = /a; return 404;")),
		"chain_default keyed {\nnamespaces team-*\nclasses nginx\nexcept team-free\n}", keyChain,
		"configmap default/global")
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		in.expectGuarded("team-a.example", "/x", http.StatusOK, "one /x")
		in.expectGuarded("team-a.example", "/last/x", http.StatusOK, "one /a/x")
		in.expectGuarded("team-a.example", "/page", http.StatusOK, "one /a")
		for _, open := range []string{"team-free.example", "b.example", "edge.example"} {
			in.expect(open, "/", http.StatusOK, "one /")
		}
	})
	if got := in.message("Ingress/team-a/canary", "NoMainIngress"); !strings.Contains(got, "chain_default") {
		t.Errorf("the verdict on the canary is %q", got)
	}
}

// TestDefaultChainErrorPages checks that the backend for the error pages of an Ingress gets no request that has not
// passed the default chain, whether the chain or an earlier step has rejected the request.
func TestDefaultChainErrorPages(t *testing.T) {
	ip, port := erring(t)
	_, pages := errorPages(t, sameStatus)
	on := func(name string, more ...string) string {
		return annotated(name, name+".example", "app", append(more, "custom-http-errors", "401,404,503",
			"default-backend", "pages")...)
	}
	in := start(t, class+service("app", port, ip)+service("pages", pages, ip)+on("a")+
		on("closed", "denylist-source-range", "nowhere")+on("maintained", "k8singress.io/maintenance", "true"),
		"chain_default keyed", keyChain)
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		in.expectGuarded("a.example", "/404", http.StatusNotFound, "page of 404")
		in.expectGuarded("a.example", "/401", http.StatusUnauthorized, "page of 401")
		in.expectGuarded("maintained.example", "/", http.StatusServiceUnavailable, "page of 503")
		in.expect("closed.example", "/", http.StatusServiceUnavailable, "")
	})
	in.options("default_backend default/pages", "chain_default keyed", keyChain)
	in.becomes("a.example", "/404", http.StatusUnauthorized, "page of 401")
}

// TestDefaultChainPassthrough checks that TLS connections are not passed through around a default chain.
func TestDefaultChainPassthrough(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example")
	in := start(t, class+service("one", e.port, e.ip)+passed("shop", "shop.example", "one"), "ssl_passthrough",
		"chain_default keyed", keyChain)
	in.endsHere("shop.example")
	const want = "not passed through, because this Ingress has chains of the option chain_default"
	all := strings.Join(in.messages("Ingress/default/shop", "InvalidAnnotation"), "\n")
	if !strings.Contains(all, want) {
		t.Errorf("it says %q", all)
	}
	in.options("ssl_passthrough", keyChain)
	in.reaches("shop.example", e, "one shop.example")
}

// TestDefaultChainAfterClientCertificates checks that a default chain runs for requests with a required client
// certificate, and that the others only get the redirect of auth-tls-error-page.
func TestDefaultChainAfterClientCertificates(t *testing.T) {
	ip, port := backend(t, "one")
	root := fixture.Authority(t, nil, "root")
	in := start(t, class+service("one", port, ip)+caSecret("ca", root)+
		mutualTLSIngress("page", "ca", "auth-tls-error-page", "https://example.com/no"),
		"chain_default keyed", keyChain)
	for version, client := range in.showing(nil, "page.example") {
		got := in.fetch(client, "https://page.example/", withKey)
		if got.status != http.StatusFound || got.header.Get("Location") != "https://example.com/no" ||
			got.body != "" || got.header["X-Ran"] != nil {
			t.Errorf("%s without a certificate: %d %q, header %v", version, got.status, got.body, got.header)
		}
	}
	for version, client := range in.showing(person(t, root, "alice"), "page.example") {
		if got := in.fetch(client, "https://page.example/"); got.status != http.StatusUnauthorized {
			t.Errorf("%s without the key: %d %q", version, got.status, got.body)
		}
		if got := in.fetch(client, "https://page.example/", withKey); got.status != http.StatusOK {
			t.Errorf("%s: %d %q", version, got.status, got.body)
		}
	}
}

// TestMissingDefaultChain checks that a default chain that cannot be provisioned closes what it guards, and that the
// administrator cannot load it.
func TestMissingDefaultChain(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("one", port, ip)+annotate(rule("a", "a.example", "Prefix", "/", "one"),
		"from-to-www-redirect", "true"), "chain_default keyed", keyChain)
	document := in.document()
	in.load("source none\nchain gone {\nheader X-Gone yes\n}")
	if status, text := in.put(document); status != http.StatusOK {
		t.Fatalf("PUT: %d %s", status, text)
	}
	for _, host := range []string{"a.example", "www.a.example"} {
		in.expect(host, "/", http.StatusServiceUnavailable, "")
	}
	err := caddy.Load(fmt.Appendf(nil, `{"admin":{"listen":%q},"apps":{"k8singress":{"http":[],"https":[],
		"default_chains":[{"chain":"gone"}]}}}`, in.admin), true)
	if err == nil || !strings.Contains(err.Error(), `there is no chain "gone"`) {
		t.Errorf("the error is %v", err)
	}
}

// TestFailingDefaultChain checks that a default chain with a handler that cannot be provisioned any more closes new
// hosts, and serves the hosts for which it was provisioned before.
func TestFailingDefaultChain(t *testing.T) {
	ip, port := backend(t, "one")
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, fixture.Authority(t, nil, "root").PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"),
		"chain_default fragile", fmt.Sprintf(`chain fragile {
			header X-Ran yes
			@elsewhere path /elsewhere
			reverse_proxy @elsewhere https://127.0.0.1:1 {
				transport http {
					tls_trust_pool file %s
				}
			}
		}`, authority))
	in.expect("a.example", "/", http.StatusOK, "one /")
	if err := os.Remove(authority); err != nil {
		t.Fatal(err)
	}
	in.writeAnything("b.yaml", annotated("b", "b.example", "one", "limit-rate", "1000"))
	in.awaitVerdict("Ingress/default/b", "Quarantined", "ca.pem")
	in.expect("b.example", "/", http.StatusServiceUnavailable, "")
	in.expect("a.example", "/", http.StatusOK, "one /")
}
