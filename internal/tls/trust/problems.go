package trust

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// Problems returns the problems of Secrets to report to users, as one Verdict for each object that refers to such a
// Secret. A Secret has a problem if it does not exist, or if required contents are missing or invalid.
func (s *Store) Problems() []*report.Verdict {
	now := time.Now()
	s.checked = now
	var all []*report.Verdict
	for _, name := range slices.SortedFunc(maps.Keys(s.authorities), ir.Name.Compare) {
		e := s.authorities[name]
		for _, refs := range s.byOrigin(e) {
			if found := e.check(refs[0], usersOf(refs), now); len(found) > 0 {
				all = append(all, &report.Verdict{Object: refs[0].origin, Problems: found})
			}
		}
	}
	return all
}

// byOrigin groups the references to a Secret: a group contains the references from the same field of the same object,
// which only differ in what uses the Secret (reference.user). The groups are sorted by object and field.
func (s *Store) byOrigin(e *entry) [][]*reference {
	var refs []*reference
	for user := range e.users {
		for _, ref := range s.references[user] {
			if ref.secret == e.name && ref.origin != (ir.Ref{}) {
				refs = append(refs, ref)
			}
		}
	}
	slices.SortFunc(refs, func(a, b *reference) int {
		return cmp.Or(cmp.Compare(a.origin.String(), b.origin.String()), cmp.Compare(a.field, b.field),
			cmp.Compare(a.user, b.user))
	})
	var groups [][]*reference
	for i, r := range refs {
		if i == 0 || r.origin != refs[i-1].origin || r.field != refs[i-1].field {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], r)
	}
	return groups
}

func usersOf(refs []*reference) string {
	names := make([]string, 0, len(refs))
	for _, r := range refs {
		names = append(names, r.user)
	}
	return report.List(names, len(names), report.MaxListed)
}

// problemAdder is a function that adds a problem to the report for an object.
type problemAdder func(severity report.Severity, reason report.Reason, format string, args ...any)

// check returns the problems of a Secret to report for one group of references to the Secret. ref is the first
// reference in the group. names lists what uses the Secret, for all references in the group.
func (e *entry) check(ref *reference, names string, now time.Time) []report.Problem {
	var found []report.Problem
	add := func(severity report.Severity, reason report.Reason, format string, args ...any) {
		found = append(found, report.Problem{
			Severity: severity, Reason: reason, Field: ref.field,
			Message: "Secret " + e.name.String() + fmt.Sprintf(format, args...),
		})
	}
	c := e.Contents()
	switch {
	case errors.Is(c.trustErr, errMissing):
		add(report.Error, report.SecretNotFound, " does not exist: %s for %s until it does", ref.effect, names)
		return found
	case errors.Is(c.trustErr, errUnknown):
		return nil
	case ref.ca && c.trustErr != nil:
		add(report.Error, report.InvalidCA, ": %v; %s for %s until it is fixed", c.trustErr, ref.effect, names)
	case ref.ca:
		c.addValidity(now, add)
	}
	e.checkPair(ref, names, now, add)
	return found
}

// checkPair adds the problems of tls.crt and tls.key. It does nothing if the reference does not need these keys.
func (e *entry) checkPair(ref *reference, names string, now time.Time, add problemAdder) {
	if !ref.pair && !ref.client {
		return
	}
	c := e.Contents()
	pair, err := c.Pair()
	if ref.client {
		pair, err = c.pairForServers()
	}
	switch {
	case !ref.pair && ref.ca && errors.Is(err, errNoPair):
		// Only ca.crt is required here, so it is not a problem that tls.crt and tls.key are missing.
	case err != nil:
		add(report.Error, report.InvalidTLSSecret, ": %v; %s for %s until it is fixed", err, ref.effect, names)
	case pair != nil:
		effect := "servers reject it"
		if ref.pair {
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
	for _, e := range s.authorities {
		if e.Contents().turned(passed) {
			return true
		}
	}
	return false
}

// turned calls passed with the start and the end of the validity periods of all certificates and revocation lists. It
// returns true if passed returns true for any of these times.
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
