package certs_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// issued is a certificate and its key.
type issued struct {
	leaf *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a certificate; a nil parent makes one that signs itself.
func issue(t testing.TB, parent *issued, template *x509.Certificate) *issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return issueFor(t, parent, template, key)
}

func issueFor(t testing.TB, parent *issued, template *x509.Certificate, key *ecdsa.PrivateKey) *issued {
	t.Helper()
	template.SerialNumber, _ = rand.Int(rand.Reader, big.NewInt(1<<62))
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(48*time.Hour)
	}
	signer, signed := crypto.Signer(key), template
	if parent != nil {
		signer, signed = parent.key, parent.leaf
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signed, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issued{leaf, key}
}

// forNames makes a certificate for these names.
func forNames(t testing.TB, names ...string) *issued {
	t.Helper()
	return issue(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: "cn"}, DNSNames: names})
}

// expired makes a certificate that ended yesterday.
func expired(t testing.TB, names ...string) *issued {
	t.Helper()
	return issue(t, nil, &x509.Certificate{
		DNSNames: names, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
	})
}

// newAuthority makes a certificate that may issue others.
func newAuthority(t testing.TB, parent *issued, name string) *issued {
	t.Helper()
	return issue(t, parent, authorityTemplate(name))
}

func authorityTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
}

func (i *issued) certPEM() []byte { return pemBlock("CERTIFICATE", i.leaf.Raw) }

func (i *issued) keyPEM() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		panic(err)
	}
	return pemBlock("PRIVATE KEY", der)
}

// data is a Secret with the certificate.
func (i *issued) data() map[string][]byte {
	return map[string][]byte{"tls.crt": i.certPEM(), "tls.key": i.keyPEM()}
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// clientOf is what a client of TLS 1.2 or 1.3 says that takes only some signatures.
func clientOf(schemes ...tls.SignatureScheme) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{
		ServerName: "web.example", SignatureSchemes: schemes, SupportedVersions: []uint16{tls.VersionTLS13},
		SupportedCurves: []tls.CurveID{tls.X25519, tls.CurveP256}, SupportedPoints: []uint8{0},
		CipherSuites: []uint16{tls.TLS_AES_128_GCM_SHA256},
	}
}
