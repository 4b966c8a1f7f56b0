package featuretests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCertificateOfAnotherHost checks that the owner of an Ingress gets a warning when its Secret is for another host.
func TestCertificateOfAnotherHost(t *testing.T) {
	ip, port := backend(t, "one")
	in := newIngress(t)
	in.write("web.yaml", class+service("web", port, ip)+
		withTLS(rule("web", "shop.example", "Prefix", "/", "web"), "shop.example", "shop-tls"))
	in.write("secret.yaml", secret(t, "shop-tls", "stray", "other.example"))
	log := filepath.Join(t.TempDir(), "log")
	in.loadCaddyfile(
		fmt.Sprintf("{\nadmin %s\nlog {\noutput file %s\n}\nk8singress {\nhttp %s\nhttps %s\nmanifests %s\n"+
			"default_certificate default/nowhere\n}\n}\n", in.admin, log, in.http, in.https, in.folder))
	in.awaitReady()
	if got := in.certificate("shop.example"); slices.Contains(got, "stray") {
		t.Errorf("the certificate is %v", got)
	}
	in.awaitReasons("Ingress/default/web", "CertificateMismatch")
	in.awaitReasons("Secret/default/nowhere", "SecretNotFound")

	// A change of another object must not repeat the warning.
	in.write("more.yaml", rule("more", "more.example", "Prefix", "/", "web"))
	in.becomes("more.example", "/", 200, "one /")
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{
		`Secret default/shop-tls: its certificate is for \"other.example\", not for shop.example`,
		"the option default_certificate names Secret default/nowhere, which does not exist or may not be read; a " +
			"self-signed certificate is used",
	} {
		if n := strings.Count(string(text), said); n != 1 {
			t.Errorf("logged %d times: %s", n, said)
		}
	}

	in.write("secret.yaml", secret(t, "shop-tls", "right", "shop.example"))
	in.showsCertificate("shop.example", "right")
	in.awaitReasons("Ingress/default/web")
	in.write("default.yaml", secret(t, "nowhere", "default", "default.example"))
	in.showsCertificate("unknown.example", "default")
	in.awaitReasons("Secret/default/nowhere")
}

func (in *ingress) awaitReasons(object string, want ...string) {
	in.Helper()
	in.eventually(object, func() error {
		if got := in.reasons(object); !slices.Equal(got, want) {
			return fmt.Errorf("reasons are %v, want %v", got, want)
		}
		return nil
	})
}
