package translate

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// portCertificates maps hosts to the certificates that TCP ports with TLS need from issuers.
type portCertificates map[string]*ir.Certificate

// portCertificates returns the certificates that the TCP ports in routes need from issuers, and the problems with these
// certificates. refused contains the routes that must stay closed, because another namespace owns their host. If
// several routes need a certificate for the same host, the first route requests it. If an Ingress of the same namespace
// provides a certificate for the host, no certificate is requested.
func (t *Translator) portCertificates(routes []*ir.StreamRoute) (
	all portCertificates, problems map[ir.Ref][]report.Problem, refused set[*ir.StreamRoute],
) {
	all, problems, refused = portCertificates{}, map[ir.Ref][]report.Problem{}, set[*ir.StreamRoute]{}
	owners := map[string]string{}
	for _, r := range routes {
		if r.TLS == nil || !r.TLS.Secret.IsZero() || r.TLS.Host == "" {
			continue
		}
		p := t.refuseHost(r, owners)
		if p == nil {
			if all[r.TLS.Host] == nil {
				owners[r.TLS.Host] = r.Backends[0].Backend.Namespace
				all[r.TLS.Host] = &ir.Certificate{Host: r.TLS.Host, Automated: true, Origin: r.Origin}
			}
			continue
		}
		if p.Reason == report.HostConflict {
			refused[r] = struct{}{}
		}
		if !slices.Contains(problems[r.Origin], *p) {
			problems[r.Origin] = append(problems[r.Origin], *p)
		}
	}
	return all, problems, refused
}

// refuseHost returns the reason why a TCP port must not use a certificate for its host, or nil if the port may use it.
// Only the namespace that owns the host may use such a certificate, because clients trust a port that presents it.
// owners is used for hosts that no Ingress owns: it maps each host to the namespace of the first port that uses the
// host.
func (t *Translator) refuseHost(r *ir.StreamRoute, owners map[string]string) *report.Problem {
	host, namespace := r.TLS.Host, r.Backends[0].Backend.Namespace
	owner := t.ownerOf(host).Namespace
	if m := t.merged.Get(host); owner == "" && m != nil && m.Certificate != nil {
		owner = m.Certificate.Origin.Namespace
	}
	if owner == "" {
		owner = owners[host]
	}
	if owner != "" && owner != namespace || !t.options.Ownership.Admits(host, namespace) {
		return &report.Problem{Severity: report.Error, Reason: report.HostConflict, Message: fmt.Sprintf(
			"another namespace owns the host %s, so the ports that use its certificate are not open: use another "+
				"host, or a Secret with a certificate",
			host)}
	}
	reason, why := t.options.Ingress.Issuance.Refuse(host)
	if why == "" {
		return nil
	}
	return &report.Problem{Severity: report.Error, Reason: reason, Message: fmt.Sprintf(
		"no certificate is requested for the host %s, so all TLS handshakes on the ports that use it fail: "+
			"%s", host, why)}
}

// The function without returns the routes that are not in refused. If refused is empty, the result is routes itself.
func without(routes []*ir.StreamRoute, refused set[*ir.StreamRoute]) []*ir.StreamRoute {
	if len(refused) == 0 {
		return routes
	}
	return slices.DeleteFunc(slices.Clone(routes), func(r *ir.StreamRoute) bool {
		_, out := refused[r]
		return out
	})
}

// addTo adds the certificates for TCP ports to changed, except for hosts whose certificate comes from an Ingress.
// before contains the certificates of the previous translation. The hosts in before are updated as well, because they
// may no longer need a certificate.
func (p portCertificates) addTo(t *Translator, changed map[string]*ir.Certificate, before portCertificates) {
	for host := range before {
		changed[host] = t.issuance.certificate(host, t.merged.Get(host))
	}
	for host, c := range p {
		if changed[host] = t.issuance.certificate(host, t.merged.Get(host)); changed[host] == nil {
			changed[host] = c
		}
	}
}

// withPortProblems returns v, the reported status of an object, together with the problems of the certificates for its
// TCP ports. v may be nil.
func (t *Translator) withPortProblems(ref ir.Ref, v *report.Verdict) *report.Verdict {
	more := t.portProblems[ref]
	if len(more) == 0 {
		return v
	}
	return v.With(&report.Verdict{Object: ref, Problems: more})
}
