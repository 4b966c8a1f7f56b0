package featuretests

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// fake is the common name of the default certificate, which is served for names without their own certificate.
const fake = "Kubernetes Ingress Controller Fake Certificate"

// tlsSecret returns a Secret in the namespace default with these contents. A nil argument omits its key.
func tlsSecret(name string, certificate, key []byte) string {
	text := fmt.Sprintf("---\napiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: %s}\ndata:\n",
		name)
	for field, value := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if value != nil {
			text += fmt.Sprintf("  %s: %q\n", field, base64.StdEncoding.EncodeToString(value))
		}
	}
	return text
}

func testFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "tls", "secret", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// spoiled returns the ways in which a Secret can be invalid, by host name. Each has words from the warning that its
// owner gets.
func spoiled(t testing.TB) map[string]struct {
	certificate, key []byte
	words            string
} {
	good, other := newCertificate(t, "good", "*.bad.example"), newCertificate(t, "other", "*.bad.example")
	large := []byte(strings.Repeat("# 900 KB of this\n", 900<<10/17))
	return map[string]struct {
		certificate, key []byte
		words            string
	}{
		"empty":     {[]byte{}, []byte{}, "tls.crt is empty"},
		"only-key":  {nil, good.key, "tls.crt is empty"},
		"only-cert": {good.certificate, nil, "tls.key is empty"},
		"garbage":   {[]byte("garbage"), good.key, "tls.crt has no certificate in PEM"},
		"broken": {[]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), good.key,
			"cannot be read"},
		"mismatch":  {good.certificate, other.key, "belongs to none of the certificates"},
		"encrypted": {good.certificate, testFile(t, "encrypted.key"), "is encrypted"},
		"dsa":       {good.certificate, fixture.PEM("DSA PRIVATE KEY", []byte("x")), "make an RSA or ECDSA key"},
		"rsa512":    {testFile(t, "rsa512.crt"), testFile(t, "rsa512.key"), "has 512 bits"},
		"900kb":     {large, good.key, "tls.crt has no certificate in PEM"},
	}
}

// TestBadSecrets checks one host for each way in which a Secret can be invalid, both from the start and after the
// Secret was valid.
func TestBadSecrets(t *testing.T) {
	ip, port := backend(t, "one")
	web := class + service("web", port, ip) + withTLS(rule("fine", "fine.example", "Prefix", "/", "web"),
		"fine.example", "fine")
	bad, mended := secret(t, "fine", "fine", "fine.example"), secret(t, "fine", "fine", "fine.example")
	cases := spoiled(t)
	for name, c := range cases {
		web += withTLS(rule(name, name+".bad.example", "Prefix", "/", "web"), name+".bad.example", name)
		bad += tlsSecret(name, c.certificate, c.key)
		mended += secret(t, name, "mended", name+".bad.example")
	}
	in := newIngress(t)
	in.write("web.yaml", web)
	in.write("secrets.yaml", bad)
	in.load("manifests " + in.folder)
	in.awaitReady()
	in.allShow(cases, fake)
	for name, c := range cases {
		if got := strings.Join(in.messages("Ingress/default/"+name, "InvalidTLSSecret"),
			"\n"); !strings.Contains(got, c.words) {
			t.Errorf("%s: the owner is told %q, want %q", name, got, c.words)
		}
	}
	in.write("secrets.yaml", mended)
	in.allShow(cases, "mended")
	in.write("secrets.yaml", bad)
	for name := range cases {
		in.awaitReasons("Ingress/default/"+name, "InvalidTLSSecret")
	}
	in.allShow(cases, "mended")
	in.showsCertificate("fine.example", "fine")
	if got := in.reasons("Ingress/default/fine"); len(got) > 0 {
		t.Errorf("the good one's reasons are %v", got)
	}
	in.write("secrets.yaml", mended)
	for name := range cases {
		in.awaitReasons("Ingress/default/" + name)
	}
	in.neverReloads()
}

func (in *ingress) allShow(cases map[string]struct {
	certificate, key []byte
	words            string
}, commonName string) {
	in.Helper()
	for name := range cases {
		in.showsCertificate(name+".bad.example", commonName)
	}
}

// TestUnusualSecretsAreAccepted checks that unusual Secrets which ingress-nginx accepts are accepted.
func TestUnusualSecretsAreAccepted(t *testing.T) {
	ip, port := backend(t, "one")
	good := newCertificate(t, "good", "*.odd.example")
	authority := issueCertificate(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, DNSNames: []string{"ca.odd.example"}, IsCA: true,
		BasicConstraintsValid: true,
	}, nil)
	chained := chainOf(t, 30, "chain.odd.example")
	junk := []byte("\nwhat somebody noted down\n")
	secrets := map[string]struct{ text, commonName string }{
		"opaque": {strings.Replace(tlsSecret("opaque", good.certificate, good.key), "kubernetes.io/tls", "Opaque", 1),
			"good"},
		"ca":    {tlsSecret("ca", authority.certificate, authority.key), "authority"},
		"chain": {tlsSecret("chain", chained.certificate, chained.key), "leaf"},
		"junk":  {tlsSecret("junk", slices.Concat(good.certificate, junk), slices.Concat(good.key, junk)), "good"},
		"plain": {tlsSecret("plain", newCertificate(t, "plain.odd.example").certificate, nil), fake},
		"cn":    {commonNameOnly(t, "cn", "cn.odd.example"), "cn.odd.example"},
	}
	manifests := class + service("web", port, ip)
	for name, s := range secrets {
		manifests += s.text + withTLS(rule(name, name+".odd.example", "Prefix", "/", "web"), name+".odd.example", name)
	}
	in := start(t, manifests)
	for name, s := range secrets {
		in.showsCertificate(name+".odd.example", s.commonName)
	}
	if n := in.chainLength("chain.odd.example"); n != 30 {
		t.Errorf("%d certificates of 30 are shown", n)
	}
}

// TestCertificateOutOfDate checks that a certificate outside its validity period is served, and that its owner gets a
// warning.
func TestCertificateOutOfDate(t *testing.T) {
	ip, port := backend(t, "one")
	manifests := class + service("web", port, ip)
	now := time.Now()
	for name, c := range map[string]struct{ from, until time.Time }{
		"past":   {now.Add(-48 * time.Hour), now.Add(-24 * time.Hour)},
		"future": {now.Add(24 * time.Hour), now.Add(48 * time.Hour)},
	} {
		made := issueCertificate(t, &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, DNSNames: []string{name + ".example"}, NotBefore: c.from,
			NotAfter: c.until,
		}, nil)
		manifests += tlsSecret(name, made.certificate, made.key) +
			withTLS(rule(name, name+".example", "Prefix", "/", "web"), name+".example", name)
	}
	in := start(t, manifests)
	for name, reason := range map[string]string{"past": "CertificateExpired", "future": "CertificateNotYetValid"} {
		in.showsCertificate(name+".example", name)
		in.awaitReasons("Ingress/default/"+name, reason)
	}
}
