package featuretests

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHTTPSnippet checks the variables of http-snippet in annotations, in headers of the ConfigMap and in the access
// log, that a change takes effect, and that a request with a text that is too long for an expression is rejected.
func TestHTTPSnippet(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Host, " ", r.Header.Get("X-Tenant"))
	}))
	defer server.Close()
	ip, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	log := filepath.Join(t.TempDir(), "access.log")
	objects := func(value string) string {
		return class + service("one", port, ip) +
			annotated("vhost", "vhost.example", "one", "upstream-vhost", "${tenant}.internal") +
			annotated("plain", "plain.example", "one") + configMap("toendpoints", `X-Tenant: "<$tenant>"`) +
			global("proxy-set-headers: default/toendpoints", "access-log-path: "+log,
				"log-format-upstream: $host $tenant $slow",
				`http-snippet: 'map $http_x_user $tenant { default none; ~^(.)lice$ $1`+value+`; }
    map $http_x_long $slow { ~(a|b|ab|aa|aab)*x$ bad; default good; }'`)
	}
	in := start(t, objects("1"), "configmap default/global", accessLogOn)
	check := func(t *testing.T, in *ingress, value string) error {
		t.Helper()
		if err := os.WriteFile(log, nil, 0o600); err != nil {
			return err
		}
		for host, want := range map[string]string{
			"vhost.example": "a" + value + ".internal <a" + value + ">",
			"plain.example": "plain.example <a" + value + ">",
		} {
			if got := in.sendBy(in.client, in.origin(host), http.MethodGet, nil, "X-User: alice"); got.body != want {
				return fmt.Errorf("%s: the endpoint got %q, want %q", host, got.body, want)
			}
			text, err := os.ReadFile(log)
			if err != nil || !strings.Contains(string(text), host+" a"+value+" good\n") {
				return fmt.Errorf("the log has %q, and the error is %w", text, err)
			}
		}
		return nil
	}
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		in.eventually("the variables", func() error { return check(t, in, "1") })
	})
	in.write("manifests.yaml", objects("2"))
	in.eventually("other variables", func() error { return check(t, in, "2") })
	in.write("manifests.yaml", strings.Replace(objects("2"), "<$tenant>", "<$slow>", 1))
	in.eventually("a rejection", func() error {
		long := "X-Long: " + strings.Repeat("a", 30_000)
		if got := in.sendBy(in.client, in.origin("plain.example"), http.MethodGet, nil, long); got.status != 400 {
			return fmt.Errorf("the status is %d", got.status)
		}
		return nil
	})
}
