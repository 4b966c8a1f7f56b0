package certs

import (
	"crypto/tls"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// UpdateListener sets which Secrets contain the certificates of a listener. name is the name of the listener, and
// origin is the object that defines it. If secrets is empty, the listener is removed. For each Secret that was not in
// use before, the caller must call SetSecret afterwards.
func (s *Store) UpdateListener(name string, origin ir.Ref, secrets []ir.Name) {
	var all []*secret
	for _, of := range secrets {
		all = append(all, s.named(source{secret: of}))
	}
	for _, of := range all {
		if of.listeners == nil {
			of.listeners = map[string]ir.Ref{}
		}
		of.listeners[name] = origin
	}
	before, _ := s.listeners.Load(name)
	if all == nil {
		s.listeners.Delete(name)
	} else {
		s.listeners.Store(name, all)
	}
	if before == nil {
		return
	}
	for _, of := range before.([]*secret) {
		if !slices.Contains(all, of) {
			delete(of.listeners, name)
		}
	}
	s.forgetUnused()
}

// FindFor returns the certificate of a listener for the server name that a client requests. If no certificate of the
// listener covers the name, it returns the listener's first usable certificate. If the listener has no usable
// certificate, it returns nil. FindFor takes no lock.
func (s *Store) FindFor(listener string, hello *tls.ClientHelloInfo) *tls.Certificate {
	all, ok := s.listeners.Load(listener)
	if !ok {
		return nil
	}
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	var first, best *tls.Certificate
	for _, of := range all.([]*secret) {
		if first == nil {
			if c := of.good(); c != nil {
				first = c.pair
			}
		}
		if c := of.goodFor(name); c != nil {
			best = choose(hello, best, c)
		}
	}
	if best == nil {
		return first
	}
	return best
}

// listenerVerdicts returns the problems of the Secret to report in the status of objects: one Verdict for each object
// that defines a listener with this Secret.
func (s *secret) listenerVerdicts(store *Store) (all []*report.Verdict) {
	origins := map[ir.Ref][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.listeners)) {
		origins[s.listeners[name]] = append(origins[s.listeners[name]], name)
	}
	for _, origin := range slices.SortedFunc(maps.Keys(origins), report.Compare) {
		if p := s.listenerProblem(store, origins[origin]); p != nil {
			all = append(all, &report.Verdict{Object: origin, Problems: []report.Problem{*p}})
		}
	}
	return all
}

func (s *secret) listenerProblem(store *Store, names []string) *report.Problem {
	subject, of := "Secret "+s.source.secret.String(), "of the listener "+strings.Join(names, ", ")
	instead := "TLS clients " + of + " get another certificate of the listener, or the default certificate,"
	if s.good() != nil {
		instead = "the last good certificate is used"
	}
	switch {
	case s.missing:
		return &report.Problem{
			Severity: report.Error, Reason: report.SecretNotFound,
			Message: subject + ", which does not exist or may not be read; " + instead + " until it does",
		}
	case s.problem != nil:
		return &report.Problem{
			Severity: report.Error, Reason: report.InvalidTLSSecret,
			Message: subject + ": " + s.problem.Error() + "; " + instead + " until it is fixed",
		}
	case s.current(store.checked) == tlssecret.Expired:
		return &report.Problem{
			Severity: report.Warning, Reason: report.CertificateExpired,
			Message: subject + ": its certificate " + of + " expired on " + report.Date(s.valid.Until) +
				", and clients reject it; put a new certificate there",
		}
	case s.current(store.checked) == tlssecret.NotYetValid:
		return &report.Problem{
			Severity: report.Warning, Reason: report.CertificateNotYetValid,
			Message: subject + ": its certificate " + of + " is not valid before " + report.Date(s.valid.From) +
				", and clients reject it until then; put a certificate there that is valid now, or correct the clock",
		}
	}
	return nil
}
