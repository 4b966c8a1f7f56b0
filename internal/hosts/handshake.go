package hosts

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// handshake takes the versions of the oldest Ingress of the host, and the ciphers of the oldest one that asks for some.
func (m *merging) handshake(results []*Contribution) {
	var chosen *Contribution
	for _, r := range results {
		if _, ok := r.Paths[m.Host.Host]; !ok {
			continue
		}
		if m.Host.TLS == nil {
			policy := r.TLS
			m.Host.TLS, m.Host.TLSOrigin = &policy, r.Ref().String()
		}
		switch {
		case !r.AsksCiphers:
		case chosen == nil:
			chosen = r
			m.Host.TLS = &ir.TLSPolicy{Version: m.Host.TLS.Version, Ciphers: r.TLS.Ciphers}
			m.Host.TLSOrigin = r.Ref().String()
		case !slices.Equal(chosen.TLS.Ciphers, r.TLS.Ciphers):
			m.problem(r, report.Problem{
				Severity: report.Warning, Reason: report.HostConflict, Field: report.AnnotationField(report.Ciphers),
				Message: fmt.Sprintf("%s has other ssl-ciphers for %s, which count", snapshot.Elder(chosen.Object, r.Object), OrEvery(m.Host.Host)),
			})
		}
	}
}
