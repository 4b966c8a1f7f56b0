package issuance

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
)

// Take returns the certificates that have been issued or renewed since the last call of Take. The keys are host names.
func (m *Manager) Take() map[string]*tls.Certificate {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]*tls.Certificate, m.fresh.Len())
	for name, h := range m.fresh.All() {
		all[name] = h.issued.pair
	}
	m.fresh.Clear()
	return all
}

const (
	// soon is how long a host may wait for its certificate before Problems reports the host. Most certificates are
	// issued within seconds.
	soon = 15 * time.Second
	// maxProblems is the maximum number of hosts of a Kubernetes object that are reported separately. The other hosts
	// of the object are reported together.
	maxProblems = 4
)

// wakeForPending sends to the channel that Changed returns when a host has waited so long for its certificate that
// Problems now reports the host.
func (m *Manager) wakeForPending() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Sub(m.tidied) >= time.Minute {
		m.tidied = now
		m.forgetIdle(now)
	}
	for h := range m.problematic.Values() {
		if waited := now.Sub(h.since); h.issued == nil && waited >= soon && waited < soon+2*tick {
			m.changed.Send()
			return
		}
	}
}

// Problems returns the problems with certificates to show to users. There is one Verdict for each Kubernetes object
// that defines hosts without a certificate, or hosts whose certificate could not be renewed.
func (m *Manager) Problems() []*report.Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	objects := map[ir.Ref][]*host{}
	for h := range m.problematic.Values() {
		// Skip hosts without an origin, which is the object that defines the host. A configuration that was written by
		// hand may omit it.
		if h.origin.Kind != "" && (h.lastError != nil || time.Since(h.since) >= soon) {
			objects[h.origin] = append(objects[h.origin], h)
		}
	}
	var all []*report.Verdict
	for _, object := range slices.SortedFunc(maps.Keys(objects), report.Compare) {
		all = append(all, verdict(object, objects[object]))
	}
	return all
}

func verdict(object ir.Ref, hosts []*host) *report.Verdict {
	slices.SortFunc(hosts, reportedBefore)
	v := &report.Verdict{Object: object}
	var pending, others []string
	for _, h := range hosts {
		switch {
		case h.lastError == nil:
			pending = append(pending, h.name)
		case len(v.Problems) == maxProblems:
			others = append(others, h.name)
		default:
			v.Problems = append(v.Problems, h.problem())
		}
	}
	if len(others) > 0 {
		v.Problems = append(v.Problems, report.Problem{
			Severity: report.Warning, Reason: report.ACMEFailed, Summary: true,
			Message: "there are problems with the certificates of more hosts: " + report.List(others,
				len(others), maxProblems),
		})
	}
	if len(pending) > 0 {
		v.Problems = append(v.Problems, report.Problem{
			Severity: report.Info, Reason: report.CertificatePending, Summary: true,
			Message: "waiting for a certificate; the default certificate is used until it arrives: " +
				report.List(pending, len(pending), maxProblems),
		})
	}
	for n := range v.Problems {
		if object.Kind == kinds.Ingress {
			v.Problems[n].Field = fieldOf(hosts)
		}
	}
	return v
}

// reportedBefore compares two hosts of an object by the order in which they are reported: by name, with the hosts on
// demand at the end, by age. Clients choose the names of hosts on demand, so a new one must not replace a host that is
// already reported separately.
func reportedBefore(a, b *host) int {
	switch {
	case a.demand != nil && b.demand != nil:
		return cmp.Or(a.since.Compare(b.since), strings.Compare(a.name, b.name))
	case a.demand != nil:
		return 1
	case b.demand != nil:
		return -1
	}
	return strings.Compare(a.name, b.name)
}

// fieldOf returns the field of an Ingress because of which the hosts need certificates.
func fieldOf(hosts []*host) string {
	if slices.ContainsFunc(hosts, func(h *host) bool { return h.demand == nil }) {
		return "spec.tls"
	}
	return report.AnnotationField("k8singress.io/on-demand-tls")
}

func (h *host) problem() report.Problem {
	p := report.Problem{Severity: report.Error, Reason: report.ACMEFailed}
	state := "there is no certificate for " + h.name + ", and the default certificate is used: "
	if h.issued != nil {
		p.Severity = report.Warning
		state = fmt.Sprintf("the certificate for %s, which is valid until %s, is not renewed: ", h.name,
			report.Date(h.issued.pair.Leaf.NotAfter))
	}
	p.Message = state + cmp.Or(h.lastError.Reason, "the reason is not known") + "; the next attempt is after " +
		report.Date(h.lastError.NotBefore)
	return p
}
