package certs

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

// Keys of a Secret that somebody is verified with.
const (
	authorityKey  = "ca.crt"
	revocationKey = "ca.crl"
)

var errNoPair = errors.New("there is neither " + certKey + " nor " + privateKey)

// ReadContents reads a Secret. Errors are worded for its owner.
func ReadContents(data map[string][]byte) *Contents {
	c := &Contents{pairErr: errNoPair}
	if c.trustErr = c.readTrust(data); c.trustErr != nil {
		// Half of it is not to be used by mistake.
		*c = Contents{trustErr: c.trustErr, pairErr: errNoPair}
	}
	if len(data[certKey]) > 0 || len(data[privateKey]) > 0 {
		c.pair, c.pairErr = Parse(data[certKey], data[privateKey])
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
	case len(bundle) > maxFile:
		return fmt.Errorf("%s has %d bytes, and at most %d are read", authorityKey, len(bundle), maxFile)
	}
	var err error
	if c.authorities, err = readCertificates(authorityKey, bundle); err != nil {
		return err
	}
	c.pools()
	if lists, ok := data[revocationKey]; ok {
		c.lists, err = readRevocations(lists, c.authorities)
	}
	return err
}

// pools tells the certificates that others in the bundle have issued from those at the top, because only what stands between
// the client and the top counts for the depth.
func (c *Contents) pools() {
	c.everything, c.tops, c.inner = x509.NewCertPool(), x509.NewCertPool(), x509.NewCertPool()
	names := make(map[string][]*x509.Certificate, len(c.authorities))
	for _, a := range c.authorities {
		names[string(a.RawSubject)] = append(names[string(a.RawSubject)], a)
	}
	for _, a := range c.authorities {
		c.everything.AddCert(a)
		above := func(other *x509.Certificate) bool { return issued(other, a) }
		if !bytes.Equal(a.RawSubject, a.RawIssuer) && slices.ContainsFunc(names[string(a.RawIssuer)], above) {
			c.inner.AddCert(a)
		} else {
			c.tops.AddCert(a)
		}
	}
}
