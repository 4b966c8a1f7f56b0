// Package secret parses the certificates and private keys in Secrets. Its error messages are meant for the owner of the
// Secret.
package secret

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

// The keys of a Secret of type kubernetes.io/tls.
const (
	CertificateKey = "tls.crt"
	PrivateKey     = "tls.key"
)

// MaxFile is the maximum size in bytes of a value in a Secret. Kubernetes does not allow larger Secrets, but a manifest
// file can contain one.
const MaxFile = 1 << 20

// maxChain is the maximum length in bytes of a certificate chain, which is sent in each handshake. Clients with OpenSSL
// reject longer chains.
const maxChain = 100 << 10

func tooLong(name string, length, limit int) error {
	return fmt.Errorf(
		"%s has %d bytes, and at most %d are read: remove everything that does not belong to this certificate",
		name, length, limit)
}

// Parse parses a certificate chain and its private key in PEM. The certificates may be in any order, and may be
// surrounded by other PEM blocks or text. In the result, the certificate that belongs to the key comes first, and each
// certificate is followed by the certificate of its issuer. The field Leaf is set.
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

// ParseCertificates parses PEM certificates. data is the value of a key in a Secret, and key is the name of this key
// for error messages. It returns an error if data contains no certificates.
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

// pair combines the key with the certificate that belongs to it. It compares public keys itself, because crypto/tls
// would parse the key again for each certificate, which takes too long for a Secret with thousands of certificates.
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
		return nil, fmt.Errorf("the certificate in %s and its issuers have %d bytes, and clients accept at most %d: "+
			"use a certificate with fewer names or issuers", CertificateKey, length, maxChain)
	}
	return result, nil
}

// inOrder returns a certificate chain that starts with leaf, in which each certificate is followed by the certificate
// of its issuer. Certificates that are not part of this chain are omitted.
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

// Issued reports whether c names issuer as its issuer. The names must match. If both certificates contain key
// identifiers, these must also match, because a certificate authority that has changed its key has two certificates
// with the same name. Issued does not verify the signature.
func Issued(issuer, c *x509.Certificate) bool {
	if !bytes.Equal(issuer.RawSubject, c.RawIssuer) || bytes.Equal(issuer.Raw, c.Raw) {
		return false
	}
	if len(c.AuthorityKeyId) == 0 {
		// A self-signed certificate may lack an authority key identifier. It was issued by itself, so another
		// certificate with the same name is not its issuer: return false.
		return !bytes.Equal(c.RawSubject, c.RawIssuer)
	}
	return len(issuer.SubjectKeyId) == 0 || bytes.Equal(issuer.SubjectKeyId, c.AuthorityKeyId)
}

// Validity says whether a point in time is before, within or after the validity period of a certificate.
type Validity int

// The possible values of Validity.
const (
	NotYetValid Validity = iota
	Valid
	Expired
)

// Period is the validity period of a certificate. The zero value stands for a missing certificate, for which At always
// returns Valid.
type Period struct{ From, Until time.Time }

// PeriodOf returns the validity period of a certificate.
func PeriodOf(c *x509.Certificate) Period { return Period{c.NotBefore, c.NotAfter} }

// At returns whether the period has not started, is valid, or has expired at the time t.
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

// Sum returns a checksum of values in a Secret, with which a caller can detect changes without keeping a copy of the
// values.
func Sum(parts ...[]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d ", len(part))
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}
