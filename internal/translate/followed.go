package translate

import (
	"fmt"
	"iter"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/backends"
)

// follow finds the backends for the Service ports that Caddy modules use.
func (d *defaults) follow(s *snapshot.Snapshot, o Options) {
	for _, port := range o.Followed {
		ref := port.Service.Of(kinds.Service)
		d.refs[ref] = struct{}{}
		b, p := find(s, port, o)
		if len(o.Namespaces) > 0 && !slices.Contains(o.Namespaces, ref.Namespace) {
			b.Missing, p = true, &report.Problem{Severity: report.Error, Reason: report.ServiceNotFound,
				Message: fmt.Sprintf("the Service %s cannot be read, because its namespace is not watched: add it "+
					"to --watch-namespace (source.kubernetes.namespaces in JSON)", port.Service)}
		}
		// Without a problem, the verdict says that the Service is used.
		d.say(ref)
		followed := ir.FollowedBackend{FollowedPort: port, Backend: b}
		if p != nil {
			followed.Problem = p.Message
			d.say(ref, report.Problem{Severity: p.Severity, Reason: p.Reason,
				Message: p.Message + " (used in the configuration of Caddy): requests and connections for it fail"})
		}
		d.followed = append(d.followed, followed)
	}
}

// find returns the backend for a port of a Service. If the Service or port does not exist, it returns a problem, and a
// backend without endpoints.
func find(s *snapshot.Snapshot, port ir.FollowedPort, o Options) (*ir.Backend, *report.Problem) {
	ref, where := port.Service.Of(kinds.Service), backends.Options{ExternalNames: o.Ingress.ExternalNames}
	if port.Port == "" {
		return backends.FindFirst(s, ref, where)
	}
	return backends.Find(s, ref, port.Port, port.Protocol, where)
}

// backends yields the default backend, if there is one, and the backends that Caddy modules use.
func (d *defaults) backends() iter.Seq[*ir.Backend] {
	return func(yield func(*ir.Backend) bool) {
		if d.backend != nil && !yield(d.backend) {
			return
		}
		for i := range d.followed {
			if !yield(d.followed[i].Backend) {
				return
			}
		}
	}
}
