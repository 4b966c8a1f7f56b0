package featuretests

import (
	"net/http"
	"slices"
	"testing"
)

func TestRoutingWatchesTheFolder(t *testing.T) {
	ip, one := backend(t, "one")
	_, two := backend(t, "two")
	in := start(t, class+service("one", one, ip)+service("two", two, ip)+rule("web", "shop.example",
		"Prefix", "/", "one"))
	in.expect("shop.example", "/a?b=c", http.StatusOK, "one /a?b=c")
	in.expect("other.example", "/", http.StatusNotFound, "")
	in.write("more.yaml", rule("api", "shop.example", "Prefix", "/api", "two"))
	in.becomes("shop.example", "/api/x", http.StatusOK, "two /api/x")
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		in.expect("shop.example", "/api/x", http.StatusOK, "two /api/x")
		in.expect("shop.example", "/apix", http.StatusOK, "one /apix")
		in.expect("other.example", "/", http.StatusNotFound, "")
	})
	in.remove("more.yaml")
	in.becomes("shop.example", "/api/x", http.StatusOK, "one /api/x")
}

func TestEndpointsChangeAtOnce(t *testing.T) {
	ip, one := backend(t, "one")
	_, two := backend(t, "two")
	in := start(t, class+rule("web", "shop.example", "Prefix", "/", "web"))
	if got := in.reasons("Ingress/default/web"); !slices.Contains(got, "ServiceNotFound") {
		t.Errorf("reasons are %v", got)
	}
	in.expect("shop.example", "/", http.StatusServiceUnavailable, "")
	in.write("service.yaml", service("web", one, ip))
	in.becomes("shop.example", "/", http.StatusOK, "one /")
	in.write("service.yaml", service("web", two, ip))
	in.becomes("shop.example", "/", http.StatusOK, "two /")
	in.write("service.yaml", service("web", two))
	in.becomes("shop.example", "/", http.StatusServiceUnavailable, "")
}

func TestFailedEndpointIsSkipped(t *testing.T) {
	ip, port := backend(t, "one")
	// Nothing listens on that port of 127.0.0.2.
	in := start(t, class+service("web", port, ip, "127.0.0.2")+rule("web", "shop.example", "Prefix", "/", "web"))
	for range 10 {
		in.expect("shop.example", "/", http.StatusOK, "one /")
	}
}

func TestRewriteTarget(t *testing.T) {
	ip, port := backend(t, "one")
	annotated := `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  annotations: {nginx.ingress.kubernetes.io/rewrite-target: "/$2"}
spec:
  ingressClassName: nginx
  rules:
  - host: shop.example
    http:
      paths:
      - path: "/api(/|$)(.*)"
        pathType: ImplementationSpecific
        backend: {service: {name: web, port: {name: http}}}
`
	in := start(t, class+service("web", port, ip)+annotated)
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		in.expect("shop.example", "/api/users?x=1", http.StatusOK, "one /users?x=1")
		in.expect("shop.example", "/api", http.StatusOK, "one /")
		in.expect("shop.example", "/API/a%20b", http.StatusOK, "one /a%20b")
		in.expect("shop.example", "/other", http.StatusNotFound, "")
		in.expect("shop.example", "/api/..%2fsecret", http.StatusNotFound, "")
	})
}

func TestNotReadyBeforeTheFirstApply(t *testing.T) {
	in := newIngress(t)
	in.load("source none")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		got := in.get("shop.example", "/")
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
			t.Errorf("it answers %d, Retry-After %q", got.status, got.header.Get("Retry-After"))
		}
	})
}

// TestReloadOfTheCaddyfile checks `caddy reload`: the routes stay, and a request in progress ends under its old
// configuration.
func TestReloadOfTheCaddyfile(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("web", port, ip)+rule("web", "shop.example", "Prefix", "/", "web"))
	for range 3 {
		in.load("manifests " + in.folder)
		in.expect("shop.example", "/", http.StatusOK, "one /")
	}
	in.write("more.yaml", rule("more", "more.example", "Prefix", "/", "web"))
	in.becomes("more.example", "/", http.StatusOK, "one /")
}
