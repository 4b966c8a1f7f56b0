// Package trust knows the certificate authorities that clients and endpoints are verified with, and the lists of revoked
// certificates. They come from Secrets, and are read when a Secret changes.
package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/ir"
)

// Authority is the certificate authority in one Secret: ca.crt, with the certificates of issuers; ca.crl, with the lists of
// certificates that they revoked; and the pair tls.crt and tls.key, to show to a server. It stays the same value while
// something refers to the Secret, and its contents are replaced as a whole when the Secret changes. A part that cannot be
// read is an error, which has to keep out all that was to be verified: no other authority ever takes its place, and least
// of all those of the system.
type Authority struct {
	name     ir.Name
	contents atomic.Pointer[Contents]
}

// Contents are those of an Authority at one moment. They are immutable, and another value with each change of the Secret, so
// that the result of a verification may be kept for as long as Authority.Contents returns them.
type Contents struct {
	// everything has all certificates of ca.crt; tops are those that no other one in it has issued, and inner are the rest.
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

// unread are the contents of a Secret that is missing or has not been read yet.
func unread(err error) *Contents { return &Contents{trustErr: err, pairErr: err} }

// Contents returns the current contents, which are never nil.
func (a *Authority) Contents() *Contents { return a.contents.Load() }

// Pool returns the certificates of ca.crt. The pool is shared: do not change it.
func (a *Authority) Pool() (*x509.CertPool, error) { return a.Contents().Pool() }

// Pair returns the certificate of tls.crt with its key.
func (a *Authority) Pair() (*tls.Certificate, error) { return a.Contents().Pair() }

// Pool returns the certificates of ca.crt. The pool is shared: do not change it.
func (c *Contents) Pool() (*x509.CertPool, error) {
	if c.trustErr != nil {
		return nil, c.trustErr
	}
	return c.everything, nil
}

// Pair returns the certificate of tls.crt with its key.
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
