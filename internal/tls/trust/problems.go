package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/model/report"
	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// Problems returns the problems of Secrets to report to users, as one Verdict for each object that refers to such a
// Secret. A Secret has a problem if it does not exist, or if required contents are missing or invalid.
func (s *Store) Problems() []*report.Verdict {
	s.checked = time.Now()
	return s.book.Problems(func(e *entry, ref *reference, users string) []report.Problem {
		return e.check(ref, users, s.checked)
	})
}

// problemAdder is a function that adds a problem to the report for an object.
type problemAdder func(severity report.Severity, reason report.Reason, format string, args ...any)

// check returns the problems of a Secret to report for one field of an object. ref is a reference to the Secret from
// this field. names lists the hosts and ports that need the Secret because of this field.
func (e *entry) check(ref *reference, names string, now time.Time) []report.Problem {
	var found []report.Problem
	add := func(severity report.Severity, reason report.Reason, format string, args ...any) {
		found = append(found, report.Problem{
			Severity: severity, Reason: reason, Field: ref.Field,
			Message: "Secret " + e.name.String() + fmt.Sprintf(format, args...),
		})
	}
	c := e.Contents()
	switch {
	case errors.Is(c.trustErr, errMissing):
		add(report.Error, report.SecretNotFound, " does not exist: %s for %s until it does", ref.Needs.effect, names)
		return found
	case errors.Is(c.trustErr, errUnknown):
		return nil
	case ref.Needs.ca && c.trustErr != nil:
		add(report.Error, report.InvalidCA, ": %v; %s for %s until it is fixed", c.trustErr, ref.Needs.effect, names)
	case ref.Needs.ca:
		c.addValidity(now, add)
	}
	e.checkPair(ref, names, now, add)
	return found
}

// checkPair adds the problems of tls.crt and tls.key. It does nothing if the reference does not need these keys.
func (e *entry) checkPair(ref *reference, names string, now time.Time, add problemAdder) {
	if !ref.Needs.pair && !ref.Needs.client {
		return
	}
	c := e.Contents()
	pair, err := c.Pair()
	if ref.Needs.client {
		pair, err = c.pairForServers()
	}
	switch {
	case !ref.Needs.pair && ref.Needs.ca && errors.Is(err, errNoPair):
		// Only ca.crt is required here, so it is not a problem that tls.crt and tls.key are missing.
	case err != nil:
		add(report.Error, report.InvalidTLSSecret, ": %v; %s for %s until it is fixed", err, ref.Needs.effect, names)
	case pair != nil:
		effect := "servers reject it"
		if ref.Needs.pair {
			effect = "clients reject it"
		}
		addExpiry(pair.Leaf, now, tlssecret.CertificateKey, effect, add)
	}
}

func (c *Contents) addValidity(now time.Time, add problemAdder) {
	for _, a := range c.authorities {
		addExpiry(a, now, authorityKey, "it verifies no certificate", add)
	}
	for _, r := range c.lists {
		issuer := tlssecret.Quote(r.list.Issuer.String())
		switch err := r.at(now); {
		case errors.Is(err, errListTooLate):
			add(report.Error, report.RevocationListExpired,
				": the revocation list of %s in %s expired on %s, and all certificates of "+
					"this issuer are rejected; put a new list there", issuer, revocationKey,
				report.Date(r.list.NextUpdate))
		case errors.Is(err, errListTooSoon):
			add(report.Error, report.RevocationListExpired,
				": the revocation list of %s in %s is not valid before %s, and all "+
					"certificates of this issuer are rejected; put a list there that is valid now, or correct "+
					"the clock",
				issuer,
				revocationKey, report.Date(r.list.ThisUpdate))
		}
	}
}

func addExpiry(cert *x509.Certificate, now time.Time, key, effect string, add problemAdder) {
	p := tlssecret.PeriodOf(cert)
	name := tlssecret.Quote(cert.Subject.String())
	switch p.At(now) {
	case tlssecret.NotYetValid:
		add(report.Warning, report.CertificateNotYetValid,
			": the certificate %s in %s is not valid before %s, and %s until then",
			name, key, report.Date(p.From), effect)
	case tlssecret.Expired:
		add(report.Warning, report.CertificateExpired,
			": the certificate %s in %s expired on %s, and %s; put a new certificate there",
			name, key, report.Date(p.Until), effect)
	case tlssecret.Valid:
	}
}

// Stale reports whether the validity period of a certificate or a revocation list has started or ended since the last
// call of Problems. Problems must then be called again, because its result has changed.
func (s *Store) Stale() bool {
	if s.checked.IsZero() {
		return false
	}
	now := time.Now()
	passed := func(moment time.Time) bool { return !moment.Before(s.checked) && moment.Before(now) }
	return s.book.Contains(func(e *entry) bool { return e.Contents().turned(passed) })
}

// turned calls the function passed with the start and the end of the validity period of each certificate and revocation
// list in c. It returns true if the function returns true for any of these times.
func (c *Contents) turned(passed func(time.Time) bool) bool {
	certificates := c.authorities
	if c.pair != nil {
		certificates = append(slices.Clip(certificates), c.pair.Leaf)
	}
	return slices.ContainsFunc(certificates,
		func(a *x509.Certificate) bool { return passed(a.NotBefore) || passed(a.NotAfter) }) ||
		slices.ContainsFunc(c.lists, func(r *revocations) bool {
			return passed(r.list.ThisUpdate) ||
				passed(r.list.NextUpdate)
		})
}
