package certs

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// problems returns a verdict for each object that refers to a Secret which is no good for what it is referred to for.
func (t *trust) problems(now time.Time) []*report.Verdict {
	t.asked = now
	var all []*report.Verdict
	for _, name := range slices.Sorted(maps.Keys(t.authorities)) {
		f := t.authorities[name]
		for _, refs := range t.byOrigin(f) {
			if found := f.check(refs[0], listedFor(refs), now); len(found) > 0 {
				all = append(all, &report.Verdict{Object: ir.ParseRef(refs[0].Origin), Problems: found})
			}
		}
	}
	return all
}

// byOrigin returns the references that differ in nothing but what they are for together, in the order of objects and fields.
func (t *trust) byOrigin(f *followed) [][]*document.Reference {
	var refs []*document.Reference
	for user := range f.users {
		for _, ref := range t.references[user] {
			if ref.Secret == f.name && ref.Origin != "" {
				refs = append(refs, ref)
			}
		}
	}
	slices.SortFunc(refs, func(a, b *document.Reference) int {
		return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Field, b.Field), cmp.Compare(a.For, b.For))
	})
	var groups [][]*document.Reference
	for i, r := range refs {
		if i == 0 || r.Origin != refs[i-1].Origin || r.Field != refs[i-1].Field {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], r)
	}
	return groups
}

func listedFor(refs []*document.Reference) string {
	names := make([]string, 0, len(refs))
	for _, r := range refs {
		names = append(names, r.For)
	}
	return report.List(names, len(names), report.MostListed)
}

// check says what is the matter with a Secret for one reference, and for those that are like it.
func (f *followed) check(ref *document.Reference, names string, now time.Time) []report.Problem {
	var found []report.Problem
	say := func(severity report.Severity, reason report.Reason, format string, args ...any) {
		found = append(found, report.Problem{
			Severity: severity, Reason: reason, Field: ref.Field, Message: "Secret " + f.name + fmt.Sprintf(format, args...),
		})
	}
	c := f.Contents()
	switch {
	case errors.Is(c.trustErr, errMissing):
		say(report.Error, report.NoSecret, " does not exist: %s for %s until it does", ref.Without, names)
		return found
	case errors.Is(c.trustErr, errUnknown):
		return nil
	case ref.CA && c.trustErr != nil:
		say(report.Error, report.InvalidAuthority, ": %v; %s for %s until it is mended", c.trustErr, ref.Without, names)
	case ref.CA:
		c.sayValidity(now, say)
	}
	f.checkPair(ref, names, now, say)
	return found
}

// checkPair says what is the matter with the pair, for those who need it, or take it if there is one.
func (f *followed) checkPair(ref *document.Reference, names string, now time.Time, say sayer) {
	if !ref.Pair && !ref.Client {
		return
	}
	c := f.Contents()
	pair, err := c.Pair()
	if ref.Client {
		pair, err = c.pairForServers()
	}
	switch {
	case !ref.Pair && ref.CA && errors.Is(err, errNoPair):
		// What is the matter with ca.crt has been said, and it is all that is needed.
	case err != nil:
		say(report.Error, report.InvalidTLSSecret, ": %v; %s for %s until it is mended", err, ref.Without, names)
	case pair != nil:
		effect := "servers refuse it"
		if ref.Pair {
			effect = "clients refuse it"
		}
		sayExpiry(pair.Leaf, now, certKey, effect, say)
	}
}

func (c *Contents) sayValidity(now time.Time, say sayer) {
	for _, a := range c.authorities {
		sayExpiry(a, now, authorityKey, "it verifies nobody", say)
	}
	for _, r := range c.lists {
		switch err := r.at(now); {
		case errors.Is(err, errListTooLate):
			say(report.Error, report.RevocationListExpired, ": the list of %s in %s had to be renewed by %s, and everybody whom it is "+
				"about is refused; put a new one there", quote(r.list.Issuer.String()), revocationKey, report.Date(r.list.NextUpdate))
		case errors.Is(err, errListTooSoon):
			say(report.Error, report.RevocationListExpired, ": the list of %s in %s is not valid before %s, and everybody whom it is "+
				"about is refused; put one there that is valid now, or set the clock right", quote(r.list.Issuer.String()), revocationKey,
				report.Date(r.list.ThisUpdate))
		}
	}
}

func sayExpiry(cert *x509.Certificate, now time.Time, key, effect string, say sayer) {
	p := period{from: cert.NotBefore, until: cert.NotAfter}
	name := quote(cert.Subject.String())
	switch p.at(now) {
	case tooEarly:
		say(report.Warning, report.CertificateNotYetValid, ": the certificate %s in %s is not valid before %s, and %s until then",
			name, key, report.Date(p.from), effect)
	case tooLate:
		say(report.Warning, report.CertificateExpired, ": the certificate %s in %s expired on %s, and %s; put a new one there",
			name, key, report.Date(p.until), effect)
	case valid:
	}
}

// turned says whether problems would return something else by now, because time has passed.
func (t *trust) turned(now time.Time) bool {
	if t.asked.IsZero() {
		return false
	}
	passed := func(moment time.Time) bool { return !moment.Before(t.asked) && moment.Before(now) }
	for _, f := range t.authorities {
		if f.Contents().turns(passed) {
			return true
		}
	}
	return false
}

func (c *Contents) turns(passed func(time.Time) bool) bool {
	certificates := c.authorities
	if c.pair != nil {
		certificates = append(slices.Clip(certificates), c.pair.Leaf)
	}
	return slices.ContainsFunc(certificates, func(a *x509.Certificate) bool { return passed(a.NotBefore) || passed(a.NotAfter) }) ||
		slices.ContainsFunc(c.lists, func(r *revocations) bool { return passed(r.list.ThisUpdate) || passed(r.list.NextUpdate) })
}
