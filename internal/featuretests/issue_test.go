package featuretests

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"testing"
	"time"
)

// tlsPair is a certificate and its key in PEM, and the same for issuing others.
type tlsPair struct {
	certificate, key []byte
	leaf             *x509.Certificate
	signer           *ecdsa.PrivateKey
}

// newCertificate has a common name and DNS names; the common name is one of them if no others are given.
func newCertificate(t testing.TB, commonName string, names ...string) tlsPair {
	t.Helper()
	if len(names) == 0 {
		names = []string{commonName}
	}
	return issueCertificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: commonName}, DNSNames: names}, nil)
}

// issueCertificate makes one that is valid now, if nothing else is said; a nil issuer is itself.
func issueCertificate(t testing.TB, template *x509.Certificate, issuer *tlsPair) tlsPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	complete(template)
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.leaf, issuer.signer
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return tlsPair{pemOf("CERTIFICATE", der), pemOf("EC PRIVATE KEY", private), leaf, key}
}

func complete(template *x509.Certificate) {
	template.SerialNumber = big.NewInt(1)
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
}

// rsaCertificate is for one host.
func rsaCertificate(t testing.TB, commonName, host string) tlsPair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: commonName}, DNSNames: []string{host}}
	complete(template)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tlsPair{certificate: pemOf("CERTIFICATE", der), key: pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))}
}

// chainOf is a leaf with so many certificates in all, the issuers in the wrong order.
func chainOf(t testing.TB, length int, host string) tlsPair {
	t.Helper()
	var issuer *tlsPair
	var chain []byte
	for i := range length - 1 {
		next := issueCertificate(t, &x509.Certificate{
			Subject: pkix.Name{CommonName: fmt.Sprintf("issuer %d", i)}, IsCA: true, BasicConstraintsValid: true,
			SubjectKeyId: []byte{byte(i)},
		}, issuer)
		chain = append(chain, next.certificate...)
		issuer = &next
	}
	leaf := issueCertificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "leaf"}, DNSNames: []string{host}}, issuer)
	leaf.certificate = append(chain, leaf.certificate...)
	return leaf
}

// commonNameOnly is a Secret with what `openssl req -subj /CN=host` makes.
func commonNameOnly(t testing.TB, name, host string) string {
	t.Helper()
	made := issueCertificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: host}}, nil)
	return tlsSecret(name, made.certificate, made.key)
}

// chainLength returns how many certificates a client of a host is shown.
func (in *ingress) chainLength(host string) int {
	in.Helper()
	conn, err := tls.Dial("tcp", in.https, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	if err != nil {
		in.Fatal(err)
	}
	defer conn.Close()
	return len(conn.ConnectionState().PeerCertificates)
}
