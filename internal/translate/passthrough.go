package translate

import (
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/ingress"
	"github.com/k8singress/k8singress/internal/report"
)

// passes says whether the TLS connections of a host go to a backend as they are.
func (t *Translator) passes(host string) bool {
	m := t.merged[host]
	return m != nil && m.Host != nil && m.Host.Passthrough != nil
}

// certificateProblems are those of an Ingress: what clients are shown here is nobody's concern where TLS ends elsewhere.
func (t *Translator) certificateProblems(r *ingress.Result) []report.Problem {
	var all []report.Problem
	for i := range r.CertificateProblems {
		p := &r.CertificateProblems[i]
		shown := len(p.Hosts) == 0 || slices.ContainsFunc(p.Hosts, func(host string) bool { return !t.passes(host) })
		switch {
		case shown:
			all = append(all, p.Problem)
		case p.Passed != "":
			all = append(all, report.Problem{Severity: report.Info, Reason: p.Reason, Field: p.Field, Message: p.Passed})
		}
	}
	return all
}

// voidWithPassthrough is what there is to say of annotations of an Ingress that asks for TLS connections to be passed through. Where
// they are not, the annotations count, and somebody who is told to remove them would let everybody in.
func (t *Translator) voidWithPassthrough(r *ingress.Result) *report.Problem {
	if !r.PassesThrough || r.Closed {
		return nil
	}
	var passed []string
	for _, host := range slices.Sorted(maps.Keys(r.Paths)) {
		if t.passes(host) && t.merged[host].PassedIn == r.Object.Namespace {
			passed = append(passed, host)
		}
	}
	return r.VoidFor(passed, len(passed) == len(r.Paths))
}
