package translate

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// portCertificates are those that issuers are asked for because a TCP port ends TLS, by host.
type portCertificates map[string]*ir.Certificate

// portCertificates returns what routes ask for, and tells the objects of those hosts for which no issuer can be asked. The
// first route of a host counts; where the host has a certificate because of an Ingress, that is shown.
func (t *Translator) portCertificates(routes []*ir.StreamRoute) (all portCertificates, problems map[ir.Ref][]report.Problem) {
	all, problems = portCertificates{}, map[ir.Ref][]report.Problem{}
	for _, r := range routes {
		if r.TLS == nil || r.TLS.Secret != "" || r.TLS.Host == "" || all[r.TLS.Host] != nil {
			continue
		}
		if reason, why := t.options.Ingress.Issuance.Refuse(r.TLS.Host); why != "" {
			p := report.Problem{Severity: report.Error, Reason: reason, Message: fmt.Sprintf(
				"no issuer is asked for a certificate of %s, so that every TLS handshake of its ports fails: %s", r.TLS.Host, why)}
			if !slices.Contains(problems[r.Origin], p) {
				problems[r.Origin] = append(problems[r.Origin], p)
			}
			continue
		}
		all[r.TLS.Host] = &ir.Certificate{Host: r.TLS.Host, Automated: true, Origin: r.Origin}
	}
	return all, problems
}

// addTo puts the certificates into those that changed, if there is no other one for the host; before are those of the last
// time.
func (p portCertificates) addTo(t *Translator, changed map[string]*ir.Certificate, before portCertificates) {
	for host := range before {
		changed[host] = t.issuance.certificate(host, t.merged[host])
	}
	for host, c := range p {
		if changed[host] = t.issuance.certificate(host, t.merged[host]); changed[host] == nil {
			changed[host] = c
		}
	}
}

// withPortProblems adds what there is to say of the certificates of ports to a verdict, which may be nil.
func (t *Translator) withPortProblems(ref ir.Ref, v *report.Verdict) *report.Verdict {
	more := t.portProblems[ref]
	switch {
	case len(more) == 0:
		return v
	case v == nil:
		return &report.Verdict{Object: ref, Problems: more}
	}
	return &report.Verdict{Object: ref, Foreign: v.Foreign, Problems: slices.Concat(v.Problems, more)}
}
