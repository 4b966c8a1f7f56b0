package featuretests

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/settings"
)

// automatic is an Ingress whose tls entry names no Secret.
func automatic(name, host string) string {
	return strings.Replace(rule(name, host, "Prefix", "/", "web"), "  rules:", fmt.Sprintf("  tls: [{hosts: [%q]}]\n  rules:", host), 1)
}

func TestCertificateFromACME(t *testing.T) {
	for name, challenge := range map[string]string{
		"HTTP-01":     `"challenges":{"tls-alpn":{"disabled":true}}`,
		"TLS-ALPN-01": `"challenges":{"http":{"disabled":true}}`,
	} {
		t.Run(name, func(t *testing.T) {
			ip, port := backend(t, "one")
			in := newIngress(t)
			ca := newAuthority(in)
			in.write("manifests.yaml", class+service("web", port, ip))
			in.issuing(settings.Config{Issuers: []json.RawMessage{ca.issuer(challenge)}})
			roots := ca.roots()
			begin := time.Now()
			in.write("web.yaml", automatic("web", "shop.example"))
			leaf := in.trusted(roots, "shop.example")
			took := time.Since(begin)
			t.Logf("from the Ingress to a valid handshake: %v", took)
			if took > 2*time.Second {
				t.Errorf("the first certificate took %v", took)
			}
			if err := leaf.VerifyHostname("shop.example"); err != nil {
				t.Error(err)
			}
			if got := ca.orders()["shop.example"]; got != 1 {
				t.Errorf("the authority took %d orders", got)
			}
		})
	}
}
