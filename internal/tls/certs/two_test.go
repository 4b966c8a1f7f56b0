package certs_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/tls/certs"
)

// withRSA returns a Secret with an RSA certificate.
func withRSA(t testing.TB, template *x509.Certificate) map[string][]byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), crypto.Signer(key))
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"tls.crt": fixture.PEM("CERTIFICATE", der),
		"tls.key": fixture.PEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
	}
}

func two(first, second string) map[string]*ir.Certificate {
	return map[string]*ir.Certificate{"web.example": {Secret: named(first), SecondSecret: named(second),
		Origin: ir.ParseRef("Ingress/a/web")}}
}

func expectKey(t testing.TB, s *certs.Store, hello *tls.ClientHelloInfo, want x509.PublicKeyAlgorithm) {
	t.Helper()
	c, err := s.GetCertificate(hello)
	if err != nil || c.Leaf.PublicKeyAlgorithm != want || c.Leaf.Subject.CommonName == fake {
		t.Errorf("a client with %v gets %v for %v, error %v, want %v",
			hello.SignatureSchemes, c.Leaf.PublicKeyAlgorithm, c.Leaf.Subject, err, want)
	}
}

func TestTwoKeysForOneHost(t *testing.T) {
	names := []string{"web.example"}
	for title, template := range map[string]*x509.Certificate{
		"names": {DNSNames: names}, "common name only": {Subject: pkix.Name{CommonName: "web.example"}},
	} {
		for _, order := range [][2]string{{"a/ecdsa", "a/rsa"}, {"a/rsa", "a/ecdsa"}} {
			t.Run(title+", "+strings.Join(order[:], ","), func(t *testing.T) {
				s := certs.NewStore()
				s.Update(two(order[0], order[1]))
				other, modern := clientOf(tls.PSSWithSHA256), clientOf(tls.ECDSAWithP256AndSHA256, tls.PSSWithSHA256)
				copied := *template
				s.SetSecret(ir.Name{Namespace: "a", Name: "rsa"}, withRSA(t, &copied), true)
				// A single certificate is used for all clients.
				expectKey(t, s, clientOf(tls.ECDSAWithP256AndSHA256), x509.RSA)
				copied = *template
				s.SetSecret(ir.Name{Namespace: "a", Name: "ecdsa"}, fixture.Identify(t, nil, &copied).Secret(), true)
				expectKey(t, s, other, x509.RSA)
				expectKey(t, s, modern, x509.ECDSA)
				s.SetSecret(ir.Name{Namespace: "a", Name: "ecdsa"}, fixture.Expired(t, names...).Secret(), true)
				expectKey(t, s, modern, x509.RSA)
				s.SetSecret(ir.Name{Namespace: "a", Name: "ecdsa"},
					fixture.Certificate(t, "stray.example").Secret(), true)
				expectKey(t, s, modern, x509.RSA)
				expectProblem(t, s,
					"its certificate is for \"stray.example\", not for web.example; the certificate of the "+
						"host's other Secret is used")
				s.SetSecret(ir.Name{Namespace: "a", Name: "ecdsa"}, fixture.Certificate(t, names...).Secret(), true)
				s.Update(changes("web.example", "a/ecdsa"))
				expectKey(t, s, other, x509.ECDSA)
				s.Update(changes("web.example", ""))
				expectFake(t, s, "web.example")
			})
		}
	}
}

func TestOneOfTwoSecretsIsGarbage(t *testing.T) {
	s := certs.NewStore()
	s.Update(two("a/one", "a/two"))
	s.SetSecret(ir.Name{Namespace: "a", Name: "one"}, garbage(), true)
	s.SetSecret(ir.Name{Namespace: "a", Name: "two"}, fixture.Certificate(t, "web.example").Secret(), true)
	expectKey(t, s, clientOf(tls.ECDSAWithP256AndSHA256), x509.ECDSA)
	expectProblem(t, s, "the certificate of the host's other Secret is used until it is fixed")
}

// expectProblem checks that there is exactly one problem, and that its message contains words.
func expectProblem(t testing.TB, s *certs.Store, words string) {
	t.Helper()
	all := s.Problems()
	if len(all) != 1 || len(all[0].Problems) != 1 || !strings.Contains(all[0].Problems[0].Message, words) {
		t.Errorf("problems are %+v, want one that says %q", all, words)
	}
}

// clientOf returns the ClientHello of a client for TLS 1.2 or 1.3 that supports only some signature schemes.
func clientOf(schemes ...tls.SignatureScheme) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{
		ServerName: "web.example", SignatureSchemes: schemes, SupportedVersions: []uint16{tls.VersionTLS13},
		SupportedCurves: []tls.CurveID{tls.X25519, tls.CurveP256}, SupportedPoints: []uint8{0},
		CipherSuites: []uint16{tls.TLS_AES_128_GCM_SHA256},
	}
}
