package featuretests

import (
	"net/http"
	"strings"
	"testing"
)

const challenge = "/.well-known/acme-challenge/"

// TestCertManagerBesideIssuers checks that cert-manager's Ingress for a challenge is routed, although an older Ingress
// owns the rest of the host, and although Caddy serves its own challenges on the same paths.
func TestCertManagerBesideIssuers(t *testing.T) {
	app, appPort := backend(t, "app")
	solver, solverPort := backend(t, "solver")
	shop := withTLS(rule("shop", "shop.example.com", "Prefix", "/", "app"), "shop.example.com", "shop-tls")
	shop = strings.Replace(shop, "{name: shop}", `{name: shop, creationTimestamp: "2026-01-01T00:00:00Z", `+
		`annotations: {cert-manager.io/cluster-issuer: letsencrypt}}`, 1)
	answering := rule("cm-acme-http-solver-x", "shop.example.com", "ImplementationSpecific",
		challenge+"token", "solver")
	answering = strings.Replace(answering, "{name: cm-acme-http-solver-x}", `{name: cm-acme-http-solver-x, `+
		`creationTimestamp: "2026-02-01T00:00:00Z", labels: {acme.cert-manager.io/http01-solver: "true"}, `+
		`annotations: {`+
		`kubernetes.io/ingress.class: nginx, nginx.ingress.kubernetes.io/whitelist-source-range: "0.0.0.0/0,::/0"}}`, 1)
	answering = strings.Replace(answering, "  ingressClassName: nginx\n", "", 1)
	objects := class + service("app", appPort, app) + service("solver", solverPort, solver)

	in := start(t, objects+shop, "auto_https all", "acme_on_missing_secret", "email ops@example.com")
	// The redirect applies, as with ingress-nginx: only the challenge's own locations are exempt.
	in.expect("shop.example.com", challenge+"token", http.StatusPermanentRedirect, "")
	in.write("manifests.yaml", objects+shop+answering)
	in.becomes("shop.example.com", challenge+"token", http.StatusOK, "solver "+challenge+"token")
	in.expect("shop.example.com", challenge+"other", http.StatusPermanentRedirect, "")
	in.expect("shop.example.com", "/", http.StatusPermanentRedirect, "")
	in.awaitReasons("Ingress/default/shop", "SecretNotFound")
	in.awaitReasons("Ingress/default/cm-acme-http-solver-x")

	in.write("secret.yaml", secret(t, "shop-tls", "by cert-manager", "shop.example.com"))
	in.showsCertificate("shop.example.com", "by cert-manager")
	in.awaitReasons("Ingress/default/shop")
}
