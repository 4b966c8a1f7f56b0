package trust

import (
	"bytes"
	"crypto/x509"
	"errors"
	"slices"
	"time"
)

// refusalTime is how long the result of a failed verification may be cached.
const refusalTime = 10 * time.Second

// VerifyClient verifies the certificate chain that a client has sent, in which the client's own certificate comes
// first. It returns an error if the chain does not lead to a certificate in ca.crt, with at most depth certificates in
// between, or if a certificate is revoked. For the same Contents, the result may be cached until the returned time.
// Error messages are short, because they are sent to backends, and are worded as in OpenSSL where possible.
func (c *Contents) VerifyClient(chain []*x509.Certificate, depth int, now time.Time) (until time.Time, err error) {
	if c.trustErr != nil {
		return now.Add(refusalTime), c.trustErr
	}
	until, err = c.verify(chain, x509.ExtKeyUsageClientAuth, depth, now)
	switch {
	case errors.Is(err, ErrIssuer) && !c.unknown(chain):
		return now.Add(refusalTime), errSignature
	case err != nil:
		return now.Add(refusalTime), err
	}
	return until, nil
}

// ErrIssuer means that the issuer of the client's certificate is unknown: ca.crt contains neither the certificate of
// the issuer nor another certificate with its name. The client's certificate is otherwise valid.
var ErrIssuer = errors.New("unable to verify the first certificate")

var (
	errTooLong   = errors.New("certificate chain too long")
	errExpired   = errors.New("certificate has expired")
	errTooSoon   = errors.New("certificate is not yet valid")
	errPurpose   = errors.New("unsuitable certificate purpose")
	errInvalid   = errors.New("invalid certificate")
	errSignature = errors.New("certificate signature failure")
)

func (c *Contents) verify(chain []*x509.Certificate, usage x509.ExtKeyUsage, depth int,
	now time.Time) (time.Time, error) {
	between := c.inner.Clone()
	for _, other := range chain[1:] {
		between.AddCert(other)
	}
	found, err := chain[0].Verify(x509.VerifyOptions{
		Roots: c.tops, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage},
	})
	if err != nil {
		return now, worded(err, chain[0], now)
	}
	err = errTooLong
	for _, candidate := range found {
		if len(candidate)-2 > depth {
			continue
		}
		until := end(candidate)
		if err = c.revoked(candidate, now, &until); err == nil {
			return until, nil
		}
	}
	return now, err
}

// maxSignatures is the maximum number of signatures to check for one chain, as in crypto/x509.
const maxSignatures = 100

// unknown reports whether the issuer of a chain is unknown. It follows the chain up to the last certificate whose
// signature can be verified, and returns true if neither ca.crt nor the chain contains a certificate with the name of
// the next issuer. If a certificate falsely names an issuer that is in ca.crt, unknown returns false, because backends
// must not receive the data of such a certificate.
func (c *Contents) unknown(chain []*x509.Certificate) bool {
	cert, left := chain[0], maxSignatures
	others := slices.Concat(c.authorities, chain[1:])
	for {
		others = slices.DeleteFunc(others, cert.Equal)
		named, issuer := false, (*x509.Certificate)(nil)
		for _, other := range others {
			if !bytes.Equal(other.RawSubject, cert.RawIssuer) {
				continue
			}
			if left--; left < 0 {
				return false
			}
			if named = true; cert.CheckSignatureFrom(other) == nil {
				issuer = other
				break
			}
		}
		if issuer == nil {
			return !named
		}
		if slices.ContainsFunc(c.authorities, issuer.Equal) {
			return false
		}
		cert = issuer
	}
}

// end returns the earliest time at which a certificate of the chain expires.
func end(chain []*x509.Certificate) time.Time {
	until := chain[0].NotAfter
	for _, cert := range chain[1:] {
		sooner(&until, cert.NotAfter)
	}
	return until
}

// worded returns the error of this package, such as ErrIssuer, that corresponds to an error of crypto/x509.
func worded(err error, leaf *x509.Certificate, now time.Time) error {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return ErrIssuer
	case !errors.As(err, &invalid):
		return errInvalid
	}
	switch invalid.Reason {
	case x509.Expired:
		if now.Before(leaf.NotBefore) {
			return errTooSoon
		}
		return errExpired
	case x509.IncompatibleUsage:
		return errPurpose
	case x509.TooManyIntermediates:
		return errTooLong
	default:
		return errInvalid
	}
}
