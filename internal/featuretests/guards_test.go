package featuretests

import (
	"net/http"
	"strings"
	"testing"
)

// TestAnUnsupportedGuardClosesItsIngress holds that nobody gets in where ingress-nginx would have asked another service,
// and that another Ingress of the same host goes on.
func TestAnUnsupportedGuardClosesItsIngress(t *testing.T) {
	ip, port := backend(t, "one")
	guarded := strings.Replace(rule("guarded", "guarded.example", "Prefix", "/admin", "one"), "{name: guarded}",
		`{name: guarded, annotations: {nginx.ingress.kubernetes.io/auth-url: "http://auth.example/"}}`, 1)
	in := start(t, class+service("one", port, ip)+guarded+rule("open", "guarded.example", "Prefix", "/", "one"))
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		in.expect("guarded.example", "/admin", http.StatusServiceUnavailable, "")
		in.expect("guarded.example", "/admin/users", http.StatusServiceUnavailable, "")
		in.expect("guarded.example", "/", http.StatusOK, "one /")
	})
}
