package ingress

import (
	"slices"
	"strconv"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/backends"
)

// backend returns the backend to which b refers, or nil if b does not refer to a Service. If the Service or port does
// not exist, it returns a backend without endpoints, so that requests get 503. passed must be true if TLS connections
// are passed through to the backend; it only affects the messages of reported problems.
func (r *reading) backend(b *networkingv1.IngressBackend, field string, passed bool) *ir.Backend {
	if r.unreadable {
		return r.closedBackend(b, field)
	}
	without := "requests get 503"
	if passed {
		without = "TLS connections are closed and requests without TLS get 503"
	}
	return r.find(b, field, without)
}

// The method find returns the backend to which b refers, and reports problems with it. The argument without is the part
// of the message that says what happens to requests if the Service or port does not exist.
func (r *reading) find(b *networkingv1.IngressBackend, field, without string) *ir.Backend {
	switch {
	case b.Resource != nil:
		r.problem(report.Error, report.InvalidBackend, field+".resource",
			"backends other than Services are not supported: the path is ignored")
		return nil
	case b.Service == nil:
		r.problem(report.Error, report.InvalidBackend, field,
			"the path has no backend and is ignored: name a Service")
		return nil
	}
	ref := ir.Ref{Kind: kinds.Service, Namespace: r.Object.Namespace, Name: b.Service.Name}
	r.depend(ref)
	wanted := b.Service.Port.Name
	if wanted == "" {
		wanted = strconv.Itoa(int(b.Service.Port.Number))
	}
	found, p := backends.Find(r.snapshot, ref, wanted, ir.TCP, backends.Options{ExternalNames: r.options.ExternalNames})
	switch {
	case p != nil && p.Reason == report.ServiceNotFound:
		r.problem(p.Severity, p.Reason, field+".service."+p.Field, "%s: %s until it exists", p.Message, without)
	case p != nil:
		r.problem(p.Severity, p.Reason, field+".service."+p.Field, "%s: %s", p.Message, without)
	}
	if !slices.Contains(r.Backends, found.ID) {
		r.Backends = append(r.Backends, found.ID)
	}
	if p == nil && r.Balances && r.LoadBalancing.UseVirtualAddress && found.VirtualAddress == "" {
		r.problem(report.Warning, report.InvalidBackend, field+".service.name",
			"the Service %s/%s has no cluster IP, which service-upstream requires: its endpoints are used",
			ref.Namespace, ref.Name)
	}
	return found
}
