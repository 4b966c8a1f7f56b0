package translate

import (
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
