// Package trust reads the CA certificates and certificate revocation lists that are used to verify clients and
// endpoints. They come from Secrets, and are read again when a Secret changes.
package trust

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/model/ir"
	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// Authority is the certificate authority in one Secret. The Secret contains the CA certificates in ca.crt, their
// certificate revocation lists in ca.crl, and a certificate and key to present to servers in tls.crt and tls.key. The
// *Authority stays the same while the configuration refers to the Secret; its Contents are replaced as a whole when the
// Secret changes. If a part of the Secret is invalid, reading this part returns an error, and the caller must reject
// all connections and requests that need it. It must never fall back to another authority, such as the system's.
type Authority struct {
	name     ir.Name
	contents atomic.Pointer[Contents]
}

// Contents holds the contents of an Authority at one point in time. It is immutable: each change of the Secret creates
// a new value. The result of a verification may be cached while Authority.Contents returns the same value.
type Contents struct {
	// everything contains all certificates of ca.crt. tops contains the certificates whose issuer is not in ca.crt, and
	// inner contains the others.
	everything, tops, inner *x509.CertPool
	authorities             []*x509.Certificate
	lists                   []*revocations
	trustErr                error

	pair    *tls.Certificate
	pairErr error
}

var (
	errUnknown = errors.New("the Secret is not known")
	errMissing = errors.New("the Secret does not exist")
)

// unread returns the contents of a Secret that does not exist or has not been read yet: every method of it returns err.
func unread(err error) *Contents { return &Contents{trustErr: err, pairErr: err} }

// Contents returns the current contents of the Secret. It never returns nil.
func (a *Authority) Contents() *Contents { return a.contents.Load() }

// Pool returns the certificates of ca.crt. The pool is shared, so the caller must not change it.
func (a *Authority) Pool() (*x509.CertPool, error) { return a.Contents().Pool() }

// Pair returns the certificate in tls.crt with the key in tls.key.
func (a *Authority) Pair() (*tls.Certificate, error) { return a.Contents().Pair() }

// Pool returns the certificates of ca.crt. The pool is shared, so the caller must not change it.
func (c *Contents) Pool() (*x509.CertPool, error) {
	if c.trustErr != nil {
		return nil, c.trustErr
	}
	return c.everything, nil
}

// Pair returns the certificate in tls.crt with the key in tls.key.
func (c *Contents) Pair() (*tls.Certificate, error) {
	if c.pairErr != nil {
		return nil, c.pairErr
	}
	return c.pair, nil
}

func newAuthority(name ir.Name) *Authority {
	a := &Authority{name: name}
	a.contents.Store(unread(errUnknown))
	return a
}

// The keys of a Secret that contains a certificate authority.
const (
	authorityKey  = "ca.crt"
	revocationKey = "ca.crl"
)

var errNoPair = errors.New("there is neither " + tlssecret.CertificateKey + " nor " + tlssecret.PrivateKey)

// ReadContents parses the data of a Secret. If a part is invalid, the methods of the result return an error that is
// worded for the owner of the Secret.
func ReadContents(data map[string][]byte) *Contents {
	c := &Contents{pairErr: errNoPair}
	if c.trustErr = c.readTrust(data); c.trustErr != nil {
		// Drop everything that was parsed before the error, so that it is not used by mistake.
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

// pools separates the certificates in ca.crt whose issuer is not in ca.crt from the others, because only the
// certificates between the client's certificate and such a top certificate count towards the verification depth.
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
