package featuretests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// secret returns a TLS Secret in default whose certificate has a common name and one DNS name.
func secret(t *testing.T, name, commonName, host string) string {
	t.Helper()
	made := newCertificate(t, commonName, host)
	return tlsSecret(name, made.certificate, made.key)
}

func withTLS(ingress, host, secret string) string {
	return strings.Replace(ingress, "  rules:",
		fmt.Sprintf("  tls: [{hosts: [%q], secretName: %s}]\n  rules:", host, secret), 1)
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
	// With garbage, the last good certificate stays.
	in.write("secret.yaml",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: shop-tls}\nstringData: {tls.crt: garbage, tls.key: garbage}\n")
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

// TestAutoHTTPS checks that the annotation, and the key for Ingresses without it, set which hosts get a certificate
// from an issuer.
func TestAutoHTTPS(t *testing.T) {
	ip, port := backend(t, "one")
	in := newIngress(t)
	of := func(name, value string, listed bool) string {
		text := rule(name, name+".example", "Prefix", "/", "web")
		if listed {
			text = automatic(name, name+".example")
		}
		if value == "" {
			return text
		}
		if listed {
			return strings.Replace(text, "annotations: {", "annotations: {k8singress.io/auto-https: "+value+", ", 1)
		}
		return annotate(text, "k8singress.io/auto-https", value)
	}
	in.write("manifests.yaml", class+service("web", port, ip)+of("all", "all", false)+of("never", `"off"`, true)+
		of("listed", "", true)+
		of("plain", "", false))
	in.issuing(settings.Config{
		ConfigMap: ir.Name{Namespace: "default", Name: "global"},
		Issuers:   []json.RawMessage{json.RawMessage(`{"module":"internal"}`)},
	})
	shows := func(host string, issued bool) {
		t.Helper()
		in.eventually(host, func() error {
			if got := in.certificate(host); slices.Contains(got, host) != issued {
				return fmt.Errorf("it is shown %v", got)
			}
			return nil
		})
	}
	shows("all.example", true)
	shows("listed.example", true)
	shows("never.example", false)
	shows("plain.example", false)
	in.write("configmap.yaml", global(`auto-https: "all"`))
	shows("plain.example", true)
	shows("never.example", false)
}
