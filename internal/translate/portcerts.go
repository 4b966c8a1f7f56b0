package translate

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// portCertificates are those that issuers are asked for because a TCP port ends TLS, by host.
type portCertificates map[string]*ir.Certificate

// portCertificates returns what routes ask for, tells the objects of those hosts for which no issuer can be asked, and
// returns the routes that may not have the host, which are not to be opened. The first route of a host counts; where the host
// has a certificate because of an Ingress of the same namespace, that is shown.
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

// refuseHost says why a port may not show a certificate of its host. That of another namespace is for what that one says: a
// client takes the port that shows it for the host. owners are the namespaces of ports that have hosts.
func (t *Translator) refuseHost(r *ir.StreamRoute, owners map[string]string) *report.Problem {
	host, namespace := r.TLS.Host, r.Backends[0].Backend.Namespace
	owner := t.ownerOf(host).Namespace
	if m := t.merged[host]; owner == "" && m != nil && m.Certificate != nil {
		owner = m.Certificate.Origin.Namespace
	}
	if owner == "" {
		owner = owners[host]
	}
	if owner != "" && owner != namespace || !t.options.Ownership.Admits(host, namespace) {
		return &report.Problem{Severity: report.Error, Reason: report.HostConflict, Message: fmt.Sprintf(
			"%s belongs to another namespace, so the ports that are to show its certificate are not open; use another host, or a Secret", host)}
	}
	reason, why := t.options.Ingress.Issuance.Refuse(host)
	if why == "" {
		return nil
	}
	return &report.Problem{Severity: report.Error, Reason: reason, Message: fmt.Sprintf(
		"no issuer is asked for a certificate of %s, so that every TLS handshake of its ports fails: %s", host, why)}
}

// without leaves routes out; without any to leave out the list itself stays.
func without(routes []*ir.StreamRoute, refused set[*ir.StreamRoute]) []*ir.StreamRoute {
	if len(refused) == 0 {
		return routes
	}
	return slices.DeleteFunc(slices.Clone(routes), func(r *ir.StreamRoute) bool {
		_, out := refused[r]
		return out
	})
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
	if len(more) == 0 {
		return v
	}
	return v.With(&report.Verdict{Object: ref, Problems: more})
}
