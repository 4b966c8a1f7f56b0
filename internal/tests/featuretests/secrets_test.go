package featuretests

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// elsewhere moves a manifest to another namespace than default.
func elsewhere(namespace, manifest string) string {
	return strings.ReplaceAll(manifest, "metadata: {name:", "metadata: {namespace: "+namespace+", name:")
}

func TestSecretsOfOneNameInTwoNamespaces(t *testing.T) {
	ip, port := backend(t, "one")
	manifests := class
	for _, namespace := range []string{"a", "b"} {
		manifests += elsewhere(namespace, service("web", port, ip)+secret(t, "tls", "of "+namespace, "*.example")+
			withTLS(rule("web", namespace+".example", "Prefix", "/", "web"), namespace+".example", "tls"))
	}
	in := start(t, manifests)
	in.showsCertificate("a.example", "of a")
	in.showsCertificate("b.example", "of b")
	in.write("more.yaml", class)
	in.write("manifests.yaml", strings.Replace(manifests, "namespace: b, name: tls", "namespace: b, name: gone", 1))
	in.awaitReasons("Ingress/b/web", "SecretNotFound")
	in.showsCertificate("a.example", "of a")
}

// TestSecretDeletedAndMadeAgain checks that the last valid certificate is served while the Secret is missing.
func TestSecretDeletedAndMadeAgain(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("web", port, ip)+withTLS(rule("web", "shop.example", "Prefix", "/", "web"),
		"shop.example", "tls"))
	in.awaitReasons("Ingress/default/web", "SecretNotFound")
	in.showsCertificate("shop.example", fake)
	in.write("secret.yaml", secret(t, "tls", "first", "shop.example"))
	in.showsCertificate("shop.example", "first")
	in.remove("secret.yaml")
	in.awaitReasons("Ingress/default/web", "SecretNotFound")
	in.showsCertificate("shop.example", "first")
	in.write("secret.yaml", secret(t, "tls", "second", "shop.example"))
	in.showsCertificate("shop.example", "second")
	in.awaitReasons("Ingress/default/web")
	if n := in.reloads(); n != "0" {
		t.Errorf("%s reloads", n)
	}
}

// TestECDSAAndRSAForOneHost checks two entries of one Ingress with two Secrets, and clients of both kinds at the same
// time.
func TestECDSAAndRSAForOneHost(t *testing.T) {
	ip, port := backend(t, "one")
	web := rule("web", "shop.example", "Prefix", "/", "web")
	web = strings.Replace(web, "  rules:", "  tls:\n  - {hosts: [shop.example], secretName: rsa}\n"+
		"  - {hosts: [shop.example], secretName: ecdsa}\n  rules:", 1)
	old := rsaCertificate(t, "old", "shop.example")
	in := start(t, class+service("web", port, ip)+web+tlsSecret("rsa", old.certificate, old.key)+secret(t, "ecdsa",
		"new", "shop.example"))
	in.awaitReasons("Ingress/default/web")
	clients := map[x509.PublicKeyAlgorithm]*tls.Config{
		x509.ECDSA: {}, x509.RSA: {MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}},
	}
	var group sync.WaitGroup
	for want, config := range clients {
		config.ServerName, config.InsecureSkipVerify = "shop.example", true
		for range 4 {
			group.Go(func() {
				for range 50 {
					if err := shows(in.https, config, want); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	group.Wait()
}

// shows makes a handshake, and returns an error if the certificate is not the wanted one.
func shows(address string, config *tls.Config, want x509.PublicKeyAlgorithm) error {
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return err
	}
	defer conn.Close()
	if got := conn.ConnectionState().PeerCertificates[0].PublicKeyAlgorithm; got != want {
		return fmt.Errorf("a client that wants %v is shown %v", want, got)
	}
	return nil
}

// TestRotationIsQuick checks that a new certificate is served without the holdoff, and without a reload.
func TestRotationIsQuick(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("web", port, ip)+withTLS(rule("web", "shop.example", "Prefix", "/", "web"),
		"shop.example", "tls")+
		secret(t, "other", "other", "other.example"))
	in.write("secret.yaml", secret(t, "tls", "0", "shop.example"))
	in.showsCertificate("shop.example", "0")
	for i := 1; i <= 5; i++ {
		begin := time.Now()
		in.write("secret.yaml", secret(t, "tls", fmt.Sprint(i), "shop.example"))
		in.showsCertificate("shop.example", fmt.Sprint(i))
		t.Logf("shown after %v", time.Since(begin).Round(time.Millisecond))
	}
	if n := in.reloads(); n != "0" {
		t.Errorf("%s reloads", n)
	}
}
