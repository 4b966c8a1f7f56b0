package trust

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/tlssecret"
)

// Keys of a Secret with a certificate authority.
const (
	authorityKey  = "ca.crt"
	revocationKey = "ca.crl"
)

var errNoPair = errors.New("there is neither " + tlssecret.CertificateKey + " nor " + tlssecret.PrivateKey)

// ReadContents reads a Secret. Errors are worded for its owner.
func ReadContents(data map[string][]byte) *Contents {
	c := &Contents{pairErr: errNoPair}
	if c.trustErr = c.readTrust(data); c.trustErr != nil {
		// Half of it is not to be used by mistake.
		*c = Contents{trustErr: c.trustErr, pairErr: errNoPair}
	}
	if cert, key := data[tlssecret.CertificateKey], data[tlssecret.PrivateKey]; len(cert) > 0 || len(key) > 0 {
		c.pair, c.pairErr = tlssecret.Parse(cert, key)
	}
	return c
}

func (c *Contents) readTrust(data map[string][]byte) error {
	bundle, ok := data[authorityKey]
	switch {
	case !ok:
		return fmt.Errorf("there is no %s: put the certificates of the authority there, in PEM", authorityKey)
	case len(bytes.TrimSpace(bundle)) == 0:
		return fmt.Errorf("%s is empty: put the certificates of the authority there, in PEM", authorityKey)
	case len(bundle) > tlssecret.MaxFile:
		return fmt.Errorf("%s has %d bytes, and at most %d are read", authorityKey, len(bundle), tlssecret.MaxFile)
	}
	var err error
	if c.authorities, err = tlssecret.ParseCertificates(authorityKey, bundle); err != nil {
		return err
	}
	c.pools()
	if lists, ok := data[revocationKey]; ok {
		c.lists, err = readRevocations(lists, c.authorities)
	}
	return err
}

// pools separates the certificates that others in the bundle have issued from those at the top, because only certificates
// between the client and the top count for the depth.
func (c *Contents) pools() {
	c.everything, c.tops, c.inner = x509.NewCertPool(), x509.NewCertPool(), x509.NewCertPool()
	names := make(map[string][]*x509.Certificate, len(c.authorities))
	for _, a := range c.authorities {
		names[string(a.RawSubject)] = append(names[string(a.RawSubject)], a)
	}
	for _, a := range c.authorities {
		c.everything.AddCert(a)
		above := func(other *x509.Certificate) bool { return tlssecret.Issued(other, a) }
		if !bytes.Equal(a.RawSubject, a.RawIssuer) && slices.ContainsFunc(names[string(a.RawIssuer)], above) {
			c.inner.AddCert(a)
		} else {
			c.tops.AddCert(a)
		}
	}
}
