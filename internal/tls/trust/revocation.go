package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// revocations is one certificate revocation list.
type revocations struct {
	list *x509.RevocationList
	// signer is the certificate in ca.crt that signed the list, or nil.
	signer *x509.Certificate
	// serials are the serial numbers of the revoked certificates, as bytes.
	serials map[string]struct{}
}

// The errors that VerifyClient or a handshake with an endpoint returns because of a certificate revocation list.
var (
	errRevoked     = errors.New("certificate revoked")
	errNoList      = errors.New("unable to get certificate CRL")
	errListTooLate = errors.New("CRL has expired")
	errListTooSoon = errors.New("CRL is not yet valid")
)

// readRevocations parses all revocation lists in ca.crl.
func readRevocations(data []byte, authorities []*x509.Certificate) ([]*revocations, error) {
	if len(data) > tlssecret.MaxFile {
		return nil, fmt.Errorf("%s has %d bytes, and at most %d are read", revocationKey, len(data), tlssecret.MaxFile)
	}
	var all []*revocations
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		r, err := readRevocation(block.Bytes, authorities)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no X509 CRL in PEM: put one there, or remove the key", revocationKey)
	}
	return all, nil
}

func readRevocation(der []byte, authorities []*x509.Certificate) (*revocations, error) {
	list, err := x509.ParseRevocationList(der)
	if err != nil {
		return nil, fmt.Errorf("a list in %s cannot be read: %w", revocationKey, err)
	}
	for _, e := range list.Extensions {
		if e.Critical {
			return nil,
				fmt.Errorf(
					"a revocation list in %s has the critical extension %s, which is not supported: put a "+
						"complete revocation list there, instead of a part of one", revocationKey, e.Id)
		}
	}
	r := &revocations{list: list, serials: make(map[string]struct{}, len(list.RevokedCertificateEntries))}
	for _, e := range list.RevokedCertificateEntries {
		r.serials[string(e.SerialNumber.Bytes())] = struct{}{}
	}
	i := slices.IndexFunc(authorities, func(a *x509.Certificate) bool {
		return bytes.Equal(a.RawSubject, list.RawIssuer) && list.CheckSignatureFrom(a) == nil
	})
	if i >= 0 {
		r.signer = authorities[i]
	}
	return r, nil
}

// r.of(issuer) reports whether the given certificate has issued the revocation list: the names match, and the signature
// of the list is valid.
func (r *revocations) of(issuer *x509.Certificate) bool {
	if !bytes.Equal(r.list.RawIssuer, issuer.RawSubject) {
		return false
	}
	return r.signer != nil && r.signer.Equal(issuer) || r.list.CheckSignatureFrom(issuer) == nil
}

// revoked checks each certificate of a chain, except the last, against the revocation lists of its issuer. It returns
// an error if a certificate is revoked, or if its issuer has no valid list. *until is the time until which the result
// may be cached. If the validity period of a list ends earlier, revoked sets *until to the end of this period.
func (c *Contents) revoked(chain []*x509.Certificate, now time.Time, until *time.Time) error {
	if len(c.lists) == 0 {
		return nil
	}
	for i, cert := range chain[:len(chain)-1] {
		if err := c.checkLists(cert, chain[i+1], now, until); err != nil {
			return err
		}
	}
	return nil
}

// checkLists checks a certificate against all revocation lists of its issuer, because ca.crl may contain an old and a
// new list of the same issuer.
func (c *Contents) checkLists(cert, issuer *x509.Certificate, now time.Time, until *time.Time) error {
	result := errNoList
	for _, r := range c.lists {
		if !r.of(issuer) {
			continue
		}
		if _, revoked := r.serials[string(cert.SerialNumber.Bytes())]; revoked {
			return errRevoked
		}
		switch err := r.at(now); {
		case err == nil:
			result = nil
			sooner(until, r.list.NextUpdate)
		case result != nil:
			result = err
		}
	}
	return result
}

// r.at(now) returns an error if the revocation list is not valid at the time now.
func (r *revocations) at(now time.Time) error {
	switch {
	case now.Before(r.list.ThisUpdate):
		return errListTooSoon
	case !r.list.NextUpdate.IsZero() && now.After(r.list.NextUpdate):
		return errListTooLate
	}
	return nil
}

// sooner sets *until to other if other is earlier. A zero other is ignored.
func sooner(until *time.Time, other time.Time) {
	if !other.IsZero() && other.Before(*until) {
		*until = other
	}
}
