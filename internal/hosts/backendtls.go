package hosts

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/report"
)

// unsecured warns the Ingresses of a host whose endpoints speak TLS, and that have no proxy-ssl-secret, of another Ingress that has
// one: with ingress-nginx its Secret would hold for them, too. Here it does not, because an Ingress must not show the client
// certificate of another owner.
func (m *merging) unsecured(results []*Contribution) {
	// All paths of an Ingress have the same.
	i := slices.IndexFunc(results, func(r *Contribution) bool {
		paths := r.Paths[m.Host.Host]
		return len(paths) > 0 && paths[0].Proxy.TLS != nil
	})
	if i < 0 {
		return
	}
	for _, r := range results {
		if r.Unsecured && len(r.Paths[m.Host.Host]) > 0 {
			m.problem(r, report.Problem{
				Severity: report.Warning, Reason: report.HostConflict, Field: "metadata.annotations", Message: fmt.Sprintf(
					"%s has %s for the same host, which holds for its own paths only: the endpoints of this Ingress are not "+
						"verified, and are shown no certificate. To have the same here, set it here too; to have this Event no more, set "+
						"proxy-ssl-location-only in the ConfigMap to true", results[i].Ref(), report.BackendTLSSecret),
			})
		}
	}
}
