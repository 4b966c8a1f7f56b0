package certs_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/fixture"
)

// forNames makes a certificate for these names.
func forNames(t testing.TB, names ...string) *fixture.Identity {
	t.Helper()
	return fixture.Identify(t, nil, &x509.Certificate{Subject: pkix.Name{CommonName: "cn"}, DNSNames: names})
}

// expired makes a certificate that ended yesterday.
func expired(t testing.TB, names ...string) *fixture.Identity {
	t.Helper()
	return fixture.Identify(t, nil, &x509.Certificate{
		DNSNames: names, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
	})
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
