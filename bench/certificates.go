package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maker issues certificates with P-256 keys.
type maker struct {
	authority *x509.Certificate
	key       *ecdsa.PrivateKey
	serial    int64
}

func newMaker() (*maker, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return &maker{key: key, authority: &x509.Certificate{
		Subject: pkix.Name{CommonName: "bench"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}}, nil
}

// issue returns a new certificate for a host and its key, both in PEM. Each serial number is larger than the previous
// one.
func (m *maker) issue(host string) (certificate, key []byte, err error) {
	m.serial++
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(m.serial), DNSNames: []string{host},
		NotBefore: m.authority.NotBefore, NotAfter: m.authority.NotAfter,
	}, m.authority, own.Public(), m.key)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), nil
}

// secured is the manifest of an Ingress with a certificate. Its values are the number of the host and its name.
const secured = `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: app-%05[1]d, namespace: bench}
spec:
  ingressClassName: nginx
  tls: [{hosts: [%[2]s], secretName: app-%05[1]d}]
  rules:
    - host: %[2]s
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: app, port: {number: 80}}}}]}
`

// securedService is the Service that these Ingresses refer to. No requests are sent to it.
const securedService = `---
apiVersion: v1
kind: Service
metadata: {name: app, namespace: bench}
spec: {ports: [{port: 80}]}
`

// tlsSecret is the manifest of a Secret. Its values are the number, the certificate and the key.
const tlsSecret = `---
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {name: app-%05d, namespace: bench}
data: {tls.crt: %s, tls.key: %s}
`

func secretOf(host int, certificate, key []byte) string {
	return fmt.Sprintf(tlsSecret, host, base64.StdEncoding.EncodeToString(certificate),
		base64.StdEncoding.EncodeToString(key))
}

// writeSecured writes an Ingress and a Secret for each host.
func writeSecured(folder string, m *maker, hosts int) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var text strings.Builder
	text.WriteString(class + securedService)
	for i := 1; i <= hosts; i++ {
		fmt.Fprintf(&text, secured, i, hostName(i))
	}
	if err := os.WriteFile(filepath.Join(folder, "ingresses.yaml"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	return writeSecrets(folder, m, hosts)
}

// writeSecrets writes new certificates for the first hosts.
func writeSecrets(folder string, m *maker, hosts int) error {
	for first := 1; first <= hosts; first += perFile {
		var text strings.Builder
		for i := first; i < first+perFile && i <= hosts; i++ {
			certificate, key, err := m.issue(hostName(i))
			if err != nil {
				return err
			}
			text.WriteString(secretOf(i, certificate, key))
		}
		// Replace the file atomically, like an editor. Otherwise the controller could read an incomplete file.
		draft := filepath.Join(filepath.Dir(folder), "secrets.draft")
		if err := os.WriteFile(draft, []byte(text.String()), 0o644); err != nil {
			return err
		}
		if err := os.Rename(draft, filepath.Join(folder, fmt.Sprintf("secrets-%05d.yaml", first))); err != nil {
			return err
		}
	}
	return nil
}
