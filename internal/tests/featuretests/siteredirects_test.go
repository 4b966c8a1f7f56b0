package featuretests

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestIngressesBesideRedirectsOfSites checks the redirect that Caddy adds to the server for port 80 for each site with
// HTTPS. It takes precedence for the host of the site, and does not affect the hosts of Ingresses.
func TestIngressesBesideRedirectsOfSites(t *testing.T) {
	ip, port := backend(t, "web")
	in := newIngress(t)
	in.write("manifests.yaml", class+service("web", port, ip)+rule("web", "shop.example", "Prefix", "/", "web")+
		rule("site", "site.localhost", "Prefix", "/", "web"))
	_, httpPort, _ := strings.Cut(in.http, ":")
	_, sitePort, _ := strings.Cut(fixture.Address(t), ":")
	in.loadCaddyfile(fmt.Sprintf(`{
	admin %s
	http_port %s
	local_certs
	skip_install_trust
	k8singress {
		http %s
		https %s
		manifests %s
	}
}
https://site.localhost:%s, https://*.wild.localhost:%s {
	bind 127.0.0.1
	respond "site"
}
`, in.admin, httpPort, in.http, in.https, in.folder, sitePort, sitePort))
	in.awaitReady()
	for _, c := range []struct {
		host      string
		status    int
		body, way string
	}{
		{"shop.example", http.StatusOK, "web /x", "direct"},
		{"SHOP.example:80", http.StatusOK, "web /x", "direct"},
		{"nobody.example", http.StatusNotFound, "", "direct"},
		{"a.b.wild.localhost", http.StatusNotFound, "", "direct"},
		{"site.localhost", http.StatusPermanentRedirect, "", "Caddy's"},
		{"SITE.localhost:80", http.StatusPermanentRedirect, "", "Caddy's"},
		{"a.wild.localhost", http.StatusPermanentRedirect, "", "Caddy's"},
	} {
		const handedOver = `k8singress_handed_over_total{reason="routes"}`
		before := in.metric(handedOver)
		in.expect(c.host, "/x", c.status, c.body)
		way := map[float64]string{0: "direct", 1: "Caddy's"}[in.metric(handedOver)-before]
		if cmp.Or(way, "another") != c.way {
			t.Errorf("%s is answered on the way that is %q, want %q", c.host, way, c.way)
		}
	}
}
