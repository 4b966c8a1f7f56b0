// Package tlssecret reads the certificates and private keys of Secrets. Its errors are worded for the owner of the Secret.
package tlssecret

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Keys of a Secret of type kubernetes.io/tls.
const (
	CertificateKey = "tls.crt"
	PrivateKey     = "tls.key"
)

// MaxFile is what a Secret of a cluster has room for, in bytes; a file of manifests could hold more.
const MaxFile = 1 << 20

// maxChain is the longest chain in bytes that clients with OpenSSL take. It is sent in each handshake.
const maxChain = 100 << 10

func tooLong(name string, length, most int) error {
	return fmt.Errorf("%s has %d bytes, and at most %d are read: leave there only what belongs to this certificate", name, length, most)
}

// Parse reads a certificate chain and its private key in PEM. The chain may be in any order, and may have other PEM blocks
// or text around it: the certificate that the key belongs to comes first in the result, each issuer after what it issued.
// Leaf is set.
func Parse(cert, key []byte) (*tls.Certificate, error) {
	switch {
	case len(bytes.TrimSpace(cert)) == 0:
		return nil, fmt.Errorf("%s is empty: put the certificate there, in PEM", CertificateKey)
	case len(bytes.TrimSpace(key)) == 0:
		return nil, fmt.Errorf("%s is empty: put the private key there, in PEM", PrivateKey)
	case len(cert) > MaxFile:
		return nil, tooLong(CertificateKey, len(cert), MaxFile)
	case len(key) > MaxFile:
		return nil, tooLong(PrivateKey, len(key), MaxFile)
	}
	signer, err := readKey(key)
	if err != nil {
		return nil, err
	}
	certificates, err := ParseCertificates(CertificateKey, cert)
	if err != nil {
		return nil, err
	}
	return pair(certificates, signer)
}

// ParseCertificates reads the certificates in PEM that a Secret holds under a key. None is an error.
func ParseCertificates(key string, data []byte) ([]*x509.Certificate, error) {
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
			return nil, fmt.Errorf("a certificate in %s cannot be read: %w", key, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no certificate in PEM", key)
	}
	return all, nil
}

var errMismatch = errors.New("the key in " + PrivateKey + " belongs to none of the certificates in " + CertificateKey)

// pair finds the certificate that the key belongs to. It compares public keys, because crypto/tls would read the key
// again for each certificate, and a Secret has room for thousands.
func pair(all []*x509.Certificate, key crypto.Signer) (*tls.Certificate, error) {
	public := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	i := slices.IndexFunc(all, func(c *x509.Certificate) bool { return public.Equal(c.PublicKey) })
	if i < 0 {
		return nil, errMismatch
	}
	leaf := all[i]
	result, length := &tls.Certificate{PrivateKey: key, Leaf: leaf}, 0
	for _, c := range inOrder(leaf, slices.Delete(all, i, i+1)) {
		result.Certificate = append(result.Certificate, c.Raw)
		length += len(c.Raw)
	}
	if length > maxChain {
		return nil, fmt.Errorf("the certificate in %s and its issuers have %d bytes, and clients take at most %d: "+
			"use one with fewer names or issuers", CertificateKey, length, maxChain)
	}
	return result, nil
}

// inOrder puts each issuer after what it issued. Certificates that issued none of them are left out.
func inOrder(leaf *x509.Certificate, others []*x509.Certificate) []*x509.Certificate {
	chain := []*x509.Certificate{leaf}
	for last := leaf; ; last = chain[len(chain)-1] {
		i := slices.IndexFunc(others, func(c *x509.Certificate) bool { return Issued(c, last) })
		if i < 0 {
			return chain
		}
		chain = append(chain, others[i])
		others = slices.Delete(others, i, i+1)
	}
}

// Issued says whether the names of two certificates fit, as those of an issuer and of what it issued, and their key
// identifiers where both have them: an authority that changed its key has two certificates of one name. It verifies no
// signature.
func Issued(issuer, c *x509.Certificate) bool {
	if !bytes.Equal(issuer.RawSubject, c.RawIssuer) || bytes.Equal(issuer.Raw, c.Raw) {
		return false
	}
	if len(c.AuthorityKeyId) == 0 {
		// One that signs itself need not name its key.
		return !bytes.Equal(c.RawSubject, c.RawIssuer)
	}
	return len(issuer.SubjectKeyId) == 0 || bytes.Equal(issuer.SubjectKeyId, c.AuthorityKeyId)
}

// Validity is where a moment stands to the time that a certificate is valid for.
type Validity int

// What a certificate may be at a moment.
const (
	NotYetValid Validity = iota
	Valid
	Expired
)

// Period is the time that a certificate is valid for. The zero value, which stands for no certificate, has no end.
type Period struct{ From, Until time.Time }

// PeriodOf returns that of a certificate.
func PeriodOf(c *x509.Certificate) Period { return Period{c.NotBefore, c.NotAfter} }

// At returns the validity at a moment.
func (p *Period) At(t time.Time) Validity {
	switch {
	case p.Until.IsZero():
		return Valid
	case t.Before(p.From):
		return NotYetValid
	case t.After(p.Until):
		return Expired
	}
	return Valid
}

// Sum returns a checksum of parts of a Secret, by which a reader knows without a copy that they are the same as before.
func Sum(parts ...[]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d ", len(part))
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}
