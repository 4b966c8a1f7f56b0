package featuretests

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// tlsPair is a certificate and its key as PEM, with the key in OpenSSL's format.
type tlsPair struct {
	certificate, key []byte
	*fixture.Identity
}

// newCertificate returns a certificate with a common name and DNS names. Without names, the common name is the DNS
// name.
func newCertificate(t testing.TB, commonName string, names ...string) tlsPair {
	t.Helper()
	if len(names) == 0 {
		names = []string{commonName}
	}
	return issueCertificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: commonName}, DNSNames: names}, nil)
}

// issueCertificate issues a certificate that is valid now, unless the template says otherwise. Without an issuer it is
// self-signed.
func issueCertificate(t testing.TB, template *x509.Certificate, issuer *fixture.Identity) tlsPair {
	t.Helper()
	made := fixture.Identify(t, issuer, template)
	private, err := x509.MarshalECPrivateKey(made.Key)
	if err != nil {
		t.Fatal(err)
	}
	return tlsPair{made.PEM(), fixture.PEM("EC PRIVATE KEY", private), made}
}

// rsaCertificate returns an RSA certificate for one host.
func rsaCertificate(t testing.TB, commonName, host string) tlsPair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: commonName}, DNSNames: []string{host}}
	fixture.Complete(t, template)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tlsPair{certificate: fixture.PEM("CERTIFICATE", der),
		key: fixture.PEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))}
}

// chainOf returns a certificate with a chain of the given length, with the issuers in the wrong order.
func chainOf(t testing.TB, length int, host string) tlsPair {
	t.Helper()
	var issuer *fixture.Identity
	var chain []byte
	for i := range length - 1 {
		next := issueCertificate(t, &x509.Certificate{
			Subject: pkix.Name{CommonName: fmt.Sprintf("issuer %d", i)}, IsCA: true, BasicConstraintsValid: true,
			SubjectKeyId: []byte{byte(i)},
		}, issuer)
		chain = append(chain, next.certificate...)
		issuer = next.Identity
	}
	leaf := issueCertificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "leaf"}, DNSNames: []string{host}},
		issuer)
	leaf.certificate = append(chain, leaf.certificate...)
	return leaf
}

// commonNameOnly returns a Secret with the result of `openssl req -subj /CN=host`.
func commonNameOnly(t testing.TB, name, host string) string {
	t.Helper()
	made := issueCertificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: host}}, nil)
	return tlsSecret(name, made.certificate, made.key)
}

// chainLength returns the number of certificates that a client of a host gets.
func (in *ingress) chainLength(host string) int {
	in.Helper()
	conn, err := tls.Dial("tcp", in.https, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	if err != nil {
		in.Fatal(err)
	}
	defer conn.Close()
	return len(conn.ConnectionState().PeerCertificates)
}
