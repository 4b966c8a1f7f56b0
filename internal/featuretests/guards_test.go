package featuretests

import (
	"net/http"
	"strings"
	"testing"
)

// TestAnUnreadableGuardClosesItsIngress holds that nobody gets in where it is not known who may, and that another Ingress of the same host goes on.
func TestAnUnreadableGuardClosesItsIngress(t *testing.T) {
	ip, port := backend(t, "one")
	guarded := strings.Replace(rule("guarded", "guarded.example", "Prefix", "/admin", "one"), "{name: guarded}",
		`{name: guarded, annotations: {nginx.ingress.kubernetes.io/denylist-source-range: nowhere}}`, 1)
	in := start(t, class+service("one", port, ip)+guarded+rule("open", "guarded.example", "Prefix", "/", "one"))
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		in.expect("guarded.example", "/admin", http.StatusServiceUnavailable, "")
		in.expect("guarded.example", "/admin/users", http.StatusServiceUnavailable, "")
		in.expect("guarded.example", "/", http.StatusOK, "one /")
	})
}
