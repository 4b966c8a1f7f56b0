package certs

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// Problems returns the problems of Secrets to report to users, as one Verdict for each object that refers to such a
// Secret. A Secret has a problem if its certificate is invalid, does not cover a host, has expired or is not valid yet.
// Problems also reports Secrets that do not exist, except in spec.tls, because the translation of Ingresses reports
// these.
func (s *Store) Problems() []*report.Verdict {
	s.checked = time.Now()
	var all []*report.Verdict
	for _, of := range slices.SortedFunc(s.bad(),
		func(a, b *secret) int { return a.source.secret.Compare(b.source.secret) }) {
		origins := of.origins(s)
		for _, origin := range slices.SortedFunc(maps.Keys(origins), report.Compare) {
			if hosts := origins[origin]; !of.missing || hosts[0] == "" {
				all = append(all, s.verdict(of, origin, hosts))
			}
		}
		all = append(all, of.listenerVerdicts(s)...)
	}
	return all
}

// Stale reports whether the validity period of a certificate has started or ended since the last call of Problems.
// Problems must then be called again, because its result has changed.
func (s *Store) Stale() bool {
	if s.checked.IsZero() {
		return false
	}
	now := time.Now()
	for of := range s.secrets.Values() {
		if of.valid.At(s.checked) != of.valid.At(now) {
			return true
		}
	}
	return false
}

// bad yields the Secrets with problems. There are usually few.
func (s *Store) bad() iter.Seq[*secret] {
	return func(yield func(*secret) bool) {
		for of := range s.secrets.Values() {
			if of.source.issued {
				continue
			}
			if (of.problem != nil || of.strays != nil || of.missing || of.current(s.checked) != tlssecret.Valid) &&
				!yield(of) {
				return
			}
		}
	}
}

// s.current(now) returns whether the certificate in use is valid now, has expired or is not valid yet. If the Secret no
// longer contains this certificate, it returns Valid, because the Secret is then reported as missing or invalid anyway.
func (s *secret) current(now time.Time) tlssecret.Validity {
	if s.outdated {
		return tlssecret.Valid
	}
	return s.valid.At(now)
}

// origins returns the hosts that use the Secret, grouped by the object that defines them. The host names of each object
// are sorted.
func (s *secret) origins(of *Store) map[ir.Ref][]string {
	all := map[ir.Ref][]string{}
	for _, name := range slices.Sorted(s.hosts.Keys()) {
		entry, _ := of.hosts.Load(name)
		origin := entry.(*host).origin
		all[origin] = append(all[origin], name)
	}
	return all
}

// verdict returns the problems of a Secret to report for one object. hosts are the object's hosts that use the Secret.
func (s *Store) verdict(of *secret, object ir.Ref, hosts []string) *report.Verdict {
	v := &report.Verdict{Object: object}
	add := func(severity report.Severity, reason report.Reason, format string, args ...any) {
		p := report.Problem{Severity: severity, Reason: reason,
			Message: of.subject(hosts) + fmt.Sprintf(format, args...)}
		if object.Kind == kinds.Ingress {
			p.Field = "spec.tls"
		}
		v.Problems = append(v.Problems, p)
	}
	switch {
	case of.missing:
		add(report.Error, report.SecretNotFound, ", which does not exist or may not be read; %s until it does",
			s.instead(of, hosts))
	case of.problem != nil:
		add(report.Error, report.InvalidTLSSecret, ": %v; %s until it is fixed", of.problem, s.instead(of, hosts))
	default:
		s.addStrays(of, hosts, add)
		of.addValidity(s.checked, hosts, add)
	}
	return v
}

// problemAdder is a function that adds a problem to the report for an object.
type problemAdder func(severity report.Severity, reason report.Reason, format string, args ...any)

// subject returns the start of a message: the name of the Secret, preceded by the option default_certificate if the
// Secret contains the default certificate.
func (s *secret) subject(hosts []string) string {
	if hosts[0] == "" {
		return "the option default_certificate names Secret " + s.source.secret.String()
	}
	return "Secret " + s.source.secret.String()
}

// instead returns the last part of an error message about an invalid Secret, which says which other certificate clients
// get.
func (s *Store) instead(of *secret, hosts []string) string {
	switch {
	case of.good() != nil:
		return "the last good certificate is used"
	case hosts[0] == "":
		return "a self-signed certificate is used"
	case s.paired(of, hosts):
		return otherShown
	}
	return "the default certificate is used"
}

const otherShown = "the certificate of the host's other Secret is used"

// paired reports whether each of the hosts also has another Secret, with a certificate that covers the host.
func (s *Store) paired(of *secret, hosts []string) bool {
	return !slices.ContainsFunc(hosts, func(name string) bool {
		value, _ := s.hosts.Load(name)
		other := value.(*host).secret
		if other == of {
			other = value.(*host).second
		}
		return other == nil || other.goodFor(name) == nil
	})
}

// wild reports whether a wildcard certificate may be used for the name. The store must contain the wildcard of the
// parent domain (*.example.com for www.example.com). The certificate of this wildcard must be usable and cover the
// name. If name is in the store, too, both must come from the same namespace.
func (s *Store) wild(name string) bool {
	_, parent, ok := strings.Cut(name, ".")
	if !ok {
		return false
	}
	value, ok := s.hosts.Load("*." + parent)
	return ok && s.mayStandIn("*."+parent, name) && value.(*host).good().goodFor(name) != nil
}

func (s *Store) addStrays(of *secret, hosts []string, add problemAdder) {
	strays := slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { _, stray := of.strays[h]; return !stray })
	if len(strays) == 0 {
		return
	}
	instead := "the default certificate is used"
	switch {
	case s.paired(of, strays):
		instead = otherShown
	case slices.ContainsFunc(strays, s.wild):
		instead = "the certificate of a wildcard host, or else the default certificate, is used"
	}
	names, hint := of.shown.Load().names, ""
	if names.HasWildcards() {
		hint = "; * matches one label"
	}
	add(report.Warning, report.CertificateMismatch,
		": its certificate is for %s, not for %s; %s there until the Secret has a "+
			"certificate for that name%s", names, report.List(strays, len(strays), report.MaxListed), instead, hint)
}

func (s *secret) addValidity(now time.Time, hosts []string, add problemAdder) {
	forHosts := ""
	if hosts[0] != "" {
		forHosts = " for " + report.List(hosts, len(hosts), report.MaxListed)
	}
	switch s.current(now) {
	case tlssecret.NotYetValid:
		add(report.Warning, report.CertificateNotYetValid,
			": its certificate%s is not valid before %s, and clients reject it until "+
				"then; put a certificate there that is valid now, or correct the clock", forHosts,
			report.Date(s.valid.From))
	case tlssecret.Expired:
		add(report.Warning, report.CertificateExpired,
			": its certificate%s expired on %s, and clients reject it; put a new certificate there",
			forHosts, report.Date(s.valid.Until))
	case tlssecret.Valid:
	}
}
