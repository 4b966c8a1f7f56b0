package featuretests

import (
	"fmt"
	"net/http"
	"testing"
)

// TestBlock checks that requests that the ConfigMap blocks get 403 on all hosts, before the redirect to HTTPS, until
// the ConfigMap changes.
func TestBlock(t *testing.T) {
	ip, port := backend(t, "web")
	routes := class + service("web", port, ip) + rule("web", "web.example", "Prefix", "/", "web") +
		annotated("secure", "secure.example", "web", "force-ssl-redirect", "true") + annotated("moved",
		"moved.example", "web",
		"permanent-redirect", "https://www.example.com", "allowlist-source-range", "0.0.0.0/0")
	options := []string{`use-forwarded-headers: "true"`, "proxy-real-ip-cidr: 127.0.0.0/8"}
	in := start(t, routes+global(append(options, "block-cidrs: 192.0.2.0/24", "block-user-agents: Bad/1.0,~*worse",
		`block-referers: "~*spam[.]example"`)...), "configmap default/global")
	blocked := []string{
		"X-Forwarded-For: 192.0.2.7", "User-Agent: bad/1.0", "User-Agent: The WORSE", "Referer: https://SPAM.example/x",
	}
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, host := range []string{"web.example", "secure.example", "moved.example", "none.example"} {
			for _, header := range blocked {
				if got := in.sendBy(in.client, in.origin(host)+"/", http.MethodGet, nil,
					header); got.status != http.StatusForbidden {
					t.Errorf("%s with %s: %d", host, header, got.status)
				}
			}
		}
		if got := in.sendBy(in.client, in.origin("web.example")+"/", http.MethodGet, nil,
			"X-Forwarded-For: 192.0.3.7", "User-Agent: bad/1.0.1", "Referer: https://a.example/"); got.status !=
			http.StatusOK {
			t.Errorf("another request: %d", got.status)
		}
	})
	in.write("manifests.yaml", routes+global(options...))
	in.eventually("nothing is blocked", func() error {
		got := in.sendBy(in.client, in.origin("web.example")+"/", http.MethodGet, nil, blocked[0])
		if got.status != http.StatusOK {
			return fmt.Errorf("%d", got.status)
		}
		return nil
	})
	in.write("manifests.yaml", routes+global(append(options, `block-user-agents: "~("`)...))
	in.becomes("web.example", "/", http.StatusServiceUnavailable, "")
}
