package featuretests

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// secret is a TLS Secret in default whose certificate has a common name and one DNS name.
func secret(t *testing.T, name, commonName, host string) string {
	t.Helper()
	made := newCertificate(t, commonName, host)
	return tlsSecret(name, made.certificate, made.key)
}

func withTLS(ingress, host, secret string) string {
	return strings.Replace(ingress, "  rules:", fmt.Sprintf("  tls: [{hosts: [%q], secretName: %s}]\n  rules:", host, secret), 1)
}

func TestCertificateOfASecret(t *testing.T) {
	ip, port := backend(t, "one")
	web := withTLS(rule("web", "shop.example", "Prefix", "/", "web"), "shop.example", "shop-tls")
	in := start(t, class+service("web", port, ip)+web)
	if got := in.certificate("shop.example"); slices.Contains(got, "shop.example") {
		t.Errorf("without the Secret the certificate is for %v", got)
	}
	if got := in.reasons("Ingress/default/web"); !slices.Contains(got, "SecretNotFound") {
		t.Errorf("reasons are %v", got)
	}
	in.write("secret.yaml", secret(t, "shop-tls", "first", "shop.example"))
	in.showsCertificate("shop.example", "first")
	in.write("secret.yaml", secret(t, "shop-tls", "second", "shop.example"))
	in.showsCertificate("shop.example", "second")
	// Garbage: the last good one stays.
	in.write("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: shop-tls}\nstringData: {tls.crt: garbage, tls.key: garbage}\n")
	in.eventually("the verdict", func() error {
		if got := in.reasons("Ingress/default/web"); !slices.Contains(got, "InvalidTLSSecret") {
			return fmt.Errorf("reasons are %v", got)
		}
		return nil
	})
	if got := in.certificate("shop.example"); got[0] != "second" {
		t.Errorf("with garbage in the Secret the certificate is %v", got)
	}
	if got := in.certificate("other.example"); slices.Contains(got, "second") {
		t.Errorf("another name is shown %v", got)
	}
}

func (in *ingress) showsCertificate(host, commonName string) {
	in.Helper()
	in.eventually("certificate "+commonName, func() error {
		if got := in.certificate(host); got[0] != commonName {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}
