package featuretests

import (
	"net/http"
	"testing"
)

// TestSourceRanges checks that clients are allowed by their address, in each version of HTTP. A trusted proxy may
// forward this address: it is the last one in X-Forwarded-For that does not belong to a trusted proxy. A list of the
// Ingress replaces the list of the ConfigMap.
func TestSourceRanges(t *testing.T) {
	ip, port := backend(t, "web")
	in := start(t, class+service("web", port, ip)+
		annotated("allowed", "allowed.example", "web", "allowlist-source-range", "192.0.2.0/24,2001:db8::/32")+
		annotated("denied", "denied.example", "web", "denylist-source-range", "192.0.2.66", "whitelist-source-range",
			"192.0.2.0/24")+
		rule("other", "other.example", "Prefix", "/", "web")+
		global(`use-forwarded-headers: "true"`, "proxy-real-ip-cidr: 127.0.0.0/8",
			"whitelist-source-range: 198.51.100.0/24"),
		"configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct {
			host, client string
			status       int
		}{
			{"allowed.example", "192.0.2.1", http.StatusOK},
			{"allowed.example", "2001:db8::1", http.StatusOK},
			{"allowed.example", "192.0.3.1", http.StatusForbidden},
			{"allowed.example", "", http.StatusForbidden},
			{"allowed.example", "192.0.2.1, 192.0.3.1", http.StatusForbidden},
			{"allowed.example", "192.0.3.1, 192.0.2.1", http.StatusOK},
			{"allowed.example", "192.0.3.1, 192.0.2.1, 127.0.0.1", http.StatusOK},
			{"denied.example", "192.0.2.1", http.StatusOK},
			{"denied.example", "192.0.2.66", http.StatusForbidden},
			{"other.example", "198.51.100.7", http.StatusOK},
			{"other.example", "192.0.2.1", http.StatusForbidden},
		} {
			if got := in.sendBy(in.client, in.origin(c.host)+"/", http.MethodGet, nil,
				"X-Forwarded-For: "+c.client); got.status != c.status {
				t.Errorf("%s for %q: %d %q, want %d", c.host, c.client, got.status, got.body, c.status)
			}
		}
	})
}
