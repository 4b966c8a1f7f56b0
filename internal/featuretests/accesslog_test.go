package featuretests

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAccessLog: each request is one line in ingress-nginx's format, in each version of HTTP; an Ingress, a path and a host that nobody has
// stay out of it, and the format changes without a reload.
func TestAccessLog(t *testing.T) {
	ip, port := backend(t, "one")
	path := filepath.Join(t.TempDir(), "access.log")
	objects := class + service("one", port, ip) + rule("a", "a.example", "Prefix", "/", "one") +
		strings.Replace(rule("quiet", "quiet.example", "Prefix", "/", "one"), "{name: quiet}",
			`{name: quiet, annotations: {nginx.ingress.kubernetes.io/enable-access-log: "false"}}`, 1) + "---\n"
	in := start(t, objects+global("access-log-path: "+path, "skip-access-log-urls: /ready"), "configmap default/global", accessLogOn)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		in.get("quiet.example", "/")
		in.get("nobody.example", "/")
		in.get("a.example", "/ready")
		in.get("a.example", "/x?y=%22")
		want := regexp.MustCompile(`^127\.0\.0\.1 - - \[../.../....:..:..:.. [+-]....\] "GET /x\?y=%22 HTTP/[123]\.[01]" 200 [0-9]+ "-" ` +
			`"(Go-http-client/[12]\.[01]|quic-go.*)" [0-9]+ [0-9]\.[0-9]{3} \[default-one-80\] \[-\] ` +
			`127\.0\.0\.1:[0-9]+ [0-9]+ [0-9]\.[0-9]{3} 200 [0-9a-f]{32}` + "\n$")
		in.eventually("a line", func() error {
			text, err := os.ReadFile(path)
			if err == nil && !want.Match(text) {
				err = fmt.Errorf("the log has %q", text)
			}
			return err
		})
	})
	in.write("manifests.yaml", objects+global("access-log-path: "+path, "log-format-upstream: '{\"of\": \"$http_user_agent\", \"no\": \"$nothing\"}'",
		`log-format-escape-json: "true"`))
	in.eventually("another format", func() error {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		in.sendBy(in.client, in.origin("a.example"), http.MethodGet, nil, `User-Agent: a"b`)
		text, err := os.ReadFile(path)
		if err == nil && string(text) != `{"of": "a\"b", "no": ""}`+"\n" {
			err = fmt.Errorf("the log has %q", text)
		}
		return err
	})
	in.eventually("a verdict on the variable that there is not", func() error {
		if reasons := in.reasons("ConfigMap/default/global"); len(reasons) != 1 {
			return fmt.Errorf("the ConfigMap is told %v", reasons)
		}
		return nil
	})
}

// TestAccessLogOfRefusals: a request that is refused before any route is looked for has a line, too.
func TestAccessLogOfRefusals(t *testing.T) {
	ip, port := backend(t, "one")
	path := filepath.Join(t.TempDir(), "access.log")
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+"---\n"+global("access-log-path: "+path),
		"configmap default/global", accessLogOn)
	via := "Via: " + strings.Repeat("1.1 k8singress, ", 8) + "1.1 last"
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := in.sendBy(in.client, in.origin("a.example"), http.MethodGet, nil, via); got.status != http.StatusLoopDetected {
			t.Errorf("a request that goes round gets %d", got.status)
		}
		in.eventually("a line", func() error {
			text, err := os.ReadFile(path)
			if err == nil && !strings.Contains(string(text), " 508 0 ") {
				err = fmt.Errorf("the log has %q", text)
			}
			return err
		})
	})
}
