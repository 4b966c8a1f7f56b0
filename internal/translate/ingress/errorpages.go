package ingress

import (
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/backends"
)

// errorPages sets r.pages, which configures which error responses are replaced.
func (r *reading) errorPages() {
	asked := &r.annotations.ErrorPages
	if len(asked.Statuses) == 0 && asked.Service == "" {
		return
	}
	r.pages = &ir.ErrorPages{Statuses: asked.Statuses, OwnOnly: asked.OwnOnly}
	if asked.Service != "" {
		r.pages.Backend = r.errorBackend(asked.Service)
	}
}

// errorBackend returns the backend for the first port of the Service that provides error pages. If the Service or port
// does not exist, the backend has no endpoints, and the Ingress gets a problem. The load balancing annotations of the
// Ingress apply only to the backends of its paths, not to this backend.
func (r *reading) errorBackend(name string) *ir.Backend {
	ref := ir.Ref{Kind: kinds.Service, Namespace: r.Object.Namespace, Name: name}
	r.depend(ref)
	found, p := backends.FindFirst(r.snapshot, ref, backends.Options{ExternalNames: r.options.ExternalNames})
	if p != nil {
		r.problem(p.Severity, p.Reason, report.AnnotationField(annotations.Key("default-backend")),
			"%s: the annotation has no effect", p.Message)
	}
	return found
}
