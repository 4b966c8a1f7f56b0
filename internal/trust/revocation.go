package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/tlssecret"
)

// revocations is one list of certificates that their issuer has revoked.
type revocations struct {
	list *x509.RevocationList
	// signer is the certificate of the bundle that has signed the list, if it is there.
	signer *x509.Certificate
	// serials are those of the certificates.
	serials map[string]struct{}
}

// Errors of a verification that a list is the cause of.
var (
	errRevoked     = errors.New("certificate revoked")
	errNoList      = errors.New("unable to get certificate CRL")
	errListTooLate = errors.New("CRL has expired")
	errListTooSoon = errors.New("CRL is not yet valid")
)

// readRevocations reads all lists of ca.crl.
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
			return nil, fmt.Errorf("a list in %s has the critical extension %s, which is not supported: put the complete list there, "+
				"not a part of it", revocationKey, e.Id)
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

// of says whether the list is the issuer's.
func (r *revocations) of(issuer *x509.Certificate) bool {
	if !bytes.Equal(r.list.RawIssuer, issuer.RawSubject) {
		return false
	}
	return r.signer != nil && r.signer.Equal(issuer) || r.list.CheckSignatureFrom(issuer) == nil
}

// revoked returns an error unless each certificate of a chain, but for the last, has a list of its issuer that it is not
// in. until is brought forward to the moment at which that may be another answer.
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

// checkLists asks all lists of the issuer: of two, the newer one need not be the one that comes first.
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

// at says whether the list is in force.
func (r *revocations) at(now time.Time) error {
	switch {
	case now.Before(r.list.ThisUpdate):
		return errListTooSoon
	case !r.list.NextUpdate.IsZero() && now.After(r.list.NextUpdate):
		return errListTooLate
	}
	return nil
}

// sooner sets a moment to another one that comes before it.
func sooner(until *time.Time, other time.Time) {
	if !other.IsZero() && other.Before(*until) {
		*until = other
	}
}
