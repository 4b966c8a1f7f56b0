package ingress

import (
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/backends"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// server sets r.Server, which snippets configure for the hosts as a whole.
func (r *reading) server() {
	of := r.annotations.Server()
	if of == nil {
		return
	}
	r.Server = &hosts.Server{
		Text: of.Text, Closed: of.Closed, Reason: of.Reason, Filters: of.Filters, Shared: of.Shared,
		Limits: of.Limits, SharedLimits: of.SharedLimits, MaxHead: of.MaxHead,
		Reads: of.Reads,
	}
	r.Server.Guard.Step, r.Server.Guard.Rejects = of.PassthroughGuard()
	for i := range of.Locations {
		r.Server.Locations = append(r.Server.Locations, r.location(&of.Locations[i]))
	}
}

// location returns the path of a host for a location of a snippet.
func (r *reading) location(l *annotations.ServerLocation) *hosts.Path {
	path := l.Match.Path
	p := &hosts.Path{
		Match: l.Match.PathMatch, Everywhere: l.Match.Everywhere, Within: l.Match.Within, Line: l.Line,
		Filters: l.Filters, Early: l.Early,
		Proxy:       ir.Proxy{Attempts: l.Settings.Attempts, Forwarding: l.Settings.ForwardingFor(path)},
		RoutePolicy: r.annotations.RoutePolicy,
	}
	if t := p.Proxy.TLS; t != nil && !t.Secret.IsZero() {
		r.depend(t.Secret.Of(kinds.Secret))
	}
	if p.Backend = r.locationBackend(l); p.Backend == nil {
		p.Backend = r.unused()
		p.Filters, p.Early = []ir.Filter{ir.Unavailable}, 1
	}
	p.Redirect, p.RedirectAlways = r.annotations.RedirectFor(path, p.Filters, r.options.HTTPSPort)
	return p
}

// locationBackend returns the backend of a location. It returns nil if the Service is in another namespace.
func (r *reading) locationBackend(l *annotations.ServerLocation) *ir.Backend {
	if l.Service == nil {
		return r.unused()
	}
	field := report.AnnotationField(report.ServerSnippet)
	if other := l.Service.Namespace; other != "" && other != r.Object.Namespace {
		r.problem(report.Error, report.InvalidBackend, field,
			"line %d: the Service %s is in the namespace %s, and a location can only use Services of its own "+
				"namespace: requests for the location get 503", l.Line, l.Service.Name, other)
		return nil
	}
	ref := ir.Ref{Kind: kinds.Service, Namespace: r.Object.Namespace, Name: l.Service.Name}
	r.depend(ref)
	found, p := backends.Find(r.snapshot, ref, l.Service.Port, ir.TCP,
		backends.Options{ExternalNames: r.options.ExternalNames})
	if p != nil {
		r.problem(p.Severity, p.Reason, field, "line %d: %s: requests for the location get 503", l.Line, p.Message)
	}
	if !slices.Contains(r.Backends, found.ID) {
		r.Backends = append(r.Backends, found.ID)
	}
	return found
}

// unused returns the backend of a location whose requests never reach a backend.
func (r *reading) unused() *ir.Backend {
	for _, host := range slices.Sorted(maps.Keys(r.Paths)) {
		for _, p := range r.Paths[host] {
			return p.Backend
		}
	}
	if r.Fallback != nil {
		return r.Fallback.Backend
	}
	return &ir.Backend{ID: backends.Prefix(r.Object.Namespace, ""), Namespace: r.Object.Namespace, Protocol: ir.TCP,
		Missing: true}
}
