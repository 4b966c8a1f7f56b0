// Package pki creates the certificates of a cluster, and the key of its service account tokens. Each start creates new
// ones.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 365 * 24 * time.Hour

// Authority is a certificate authority with a folder for the issued certificates.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Request describes a certificate. All certificates are valid for clients. Certificates with Hosts are also valid for
// servers.
type Request struct {
	// Name is the name of the files Name.crt and Name.key.
	Name string
	// User is the name of the Kubernetes user.
	User string
	// Groups are the groups of the user.
	Groups []string
	// Hosts are host names and IP addresses.
	Hosts []string
}

// NewAuthority creates an authority, the folder dir, and the file ca.crt in it.
func NewAuthority(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := newTemplate(pkix.Name{CommonName: "testbed-ca"})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{dir: dir, cert: cert, key: key}, writePEM(filepath.Join(dir, "ca.crt"), "CERTIFICATE", der)
}

// Path returns the path of a file in the folder.
func (a *Authority) Path(file string) string { return filepath.Join(a.dir, file) }

// Issue creates a certificate, and writes Name.crt and Name.key.
func (a *Authority) Issue(r Request) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := newTemplate(pkix.Name{CommonName: r.User, Organization: r.Groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, host := range r.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("issuing %s: %w", r.Name, err)
	}
	if err := writePEM(a.Path(r.Name+".crt"), "CERTIFICATE", der); err != nil {
		return err
	}
	return a.writeKey(r.Name+".key", key)
}

// IssueTokenKey writes name.key, which signs service account tokens, and name.pub, which verifies them.
func (a *Authority) IssueTokenKey(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(a.Path(name+".pub"), "PUBLIC KEY", public); err != nil {
		return err
	}
	return a.writeKey(name+".key", key)
}

func (a *Authority) writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(a.Path(file), "EC PRIVATE KEY", der)
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		// The clock may be set back while the cluster runs.
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(validity),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
