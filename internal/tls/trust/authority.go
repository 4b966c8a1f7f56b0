// Package trust verifies the certificates of clients and endpoints with CA certificates and certificate revocation
// lists. These come from Secrets, and are read again when a Secret changes.
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

// Authority holds the contents of one Secret, for verifying certificates and for authenticating to endpoints: CA
// certificates (ca.crt), their certificate revocation lists (ca.crl), and a client certificate with its key (tls.crt
// and tls.key). The same *Authority is used as long as the configuration refers to the Secret; when the Secret changes,
// its Contents are replaced as a whole. If a value in the Secret is invalid, the methods that need this value return an
// error. The caller must then reject the connection or request. It must never fall back to other CA certificates, such
// as the system's.
type Authority struct {
	name     ir.Name
	contents atomic.Pointer[Contents]
}

// Contents holds the contents of a Secret at one point in time. It is immutable: if the Secret changes, a new Contents
// is created. The result of a verification may be cached as long as Authority.Contents returns the same value.
type Contents struct {
	// everything contains all certificates of ca.crt. tops contains the certificates whose issuer is not in ca.crt,
	// such as root certificates. inner contains all other certificates of ca.crt.
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

// unread returns a Contents for a Secret that does not exist or has not been read yet. Its methods return err.
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

// The keys of a Secret with CA certificates.
const (
	authorityKey  = "ca.crt"
	revocationKey = "ca.crl"
)

var errNoPair = errors.New("there is neither " + tlssecret.CertificateKey + " nor " + tlssecret.PrivateKey)

// ReadContents parses the data of a Secret. If the value of a key is invalid, the methods of the result that need this
// value return an error. The error messages are meant for the owner of the Secret.
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

// pools sorts the certificates of ca.crt into tops, whose issuer is not in ca.crt, and inner. They are separated
// because the verification depth is the number of certificates between the client's certificate and a certificate in
// tops.
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
