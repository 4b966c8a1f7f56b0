// Package certs holds the certificates of Secrets: parsed once, kept while they are good, and found by the name that a
// TLS client asks for.
package certs

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

// Keys of a Secret of type kubernetes.io/tls.
const (
	certKey    = "tls.crt"
	privateKey = "tls.key"
)

// minRSA is the length in bits of the shortest RSA key that crypto/tls works with.
const minRSA = 1024

// Parse reads a certificate chain and its private key in PEM. The chain may be in any order, and may have other PEM blocks
// or text around it: the certificate that the key belongs to comes first in the result, each issuer after what it issued.
// Leaf is set. Errors are worded for the owner of the Secret.
func Parse(cert, key []byte) (*tls.Certificate, error) {
	switch {
	case len(bytes.TrimSpace(cert)) == 0:
		return nil, fmt.Errorf("%s is empty: put the certificate there, in PEM", certKey)
	case len(bytes.TrimSpace(key)) == 0:
		return nil, fmt.Errorf("%s is empty: put the private key there, in PEM", privateKey)
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	certificates, err := readChain(cert)
	if err != nil {
		return nil, err
	}
	return pair(certificates, key)
}

func checkKey(key []byte) error {
	block, _ := pem.Decode(key)
	switch {
	case block == nil:
		return fmt.Errorf("%s has no PEM block", privateKey)
	case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["Proc-Type"] == "4,ENCRYPTED":
		return fmt.Errorf("the key in %s is encrypted: store it without a passphrase", privateKey)
	}
	return nil
}

func readChain(data []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("a certificate in %s cannot be read: %w", certKey, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no certificate in PEM", certKey)
	}
	return all, nil
}

var errMismatch = errors.New("the key in " + privateKey + " belongs to none of the certificates in " + certKey)

// pair finds the certificate that the key belongs to.
func pair(all []*x509.Certificate, key []byte) (*tls.Certificate, error) {
	var reason error
	for i, leaf := range all {
		chain := inOrder(leaf, slices.Delete(slices.Clone(all), i, i+1))
		result, err := tls.X509KeyPair(encode(chain), key)
		if err != nil {
			reason = err
			continue
		}
		if public, ok := leaf.PublicKey.(*rsa.PublicKey); ok && public.N.BitLen() < minRSA {
			return nil, fmt.Errorf("the RSA key has %d bits, and TLS needs at least %d", public.N.BitLen(), minRSA)
		}
		result.Leaf = leaf
		return &result, nil
	}
	if len(all) > 1 {
		return nil, errMismatch
	}
	return nil, fmt.Errorf("certificate and key do not go together: %w", reason)
}

// inOrder puts each issuer after what it issued. Certificates that issued none of them are left out.
func inOrder(leaf *x509.Certificate, others []*x509.Certificate) []*x509.Certificate {
	chain := []*x509.Certificate{leaf}
	for last := leaf; ; last = chain[len(chain)-1] {
		i := slices.IndexFunc(others, func(c *x509.Certificate) bool {
			return bytes.Equal(c.RawSubject, last.RawIssuer) && !bytes.Equal(c.Raw, last.Raw)
		})
		if i < 0 {
			return chain
		}
		chain = append(chain, others[i])
		others = slices.Delete(others, i, i+1)
	}
}

func encode(chain []*x509.Certificate) []byte {
	var data []byte
	for _, c := range chain {
		data = append(data, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return data
}

// Covers says whether a certificate is good for a name. One without subject alternative names is matched by its common
// name, as ingress-nginx does and crypto/x509 does not: it is what `openssl req -subj /CN=host` makes.
func Covers(leaf *x509.Certificate, host string) bool {
	names := leaf.DNSNames
	if len(names) == 0 {
		names = []string{leaf.Subject.CommonName}
	}
	return slices.ContainsFunc(names, func(name string) bool { return matches(name, host) })
}
