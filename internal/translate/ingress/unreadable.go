package ingress

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/backends"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// Translate translates one Ingress. If this panics, the Ingress gets a problem, and all paths that can still be read
// return 503, because they may restrict access to a path of another Ingress. All other settings that cannot be read are
// ignored. An Ingress whose class cannot be read is assumed to belong to this controller.
func Translate(s *snapshot.Snapshot, object *networkingv1.Ingress, o Options) *Result {
	return readIsolatingPanics((*reading).read, newReading(s, object, o))
}

func readIsolatingPanics(read func(*reading), r *reading) *Result {
	fault := panics.Try(func() { read(r) })
	if fault == nil {
		return r.Result
	}
	closed := newReading(r.snapshot, r.Object, r.options)
	// The panic may be caused by another object to which the Ingress refers. Record these references, so that the
	// Ingress is translated again when the other object changes.
	closed.dependOnSpec()
	for _, ref := range r.Refs {
		closed.depend(ref)
	}
	if panics.Try(func() { closed.Ours = closed.selected() && closed.ours(closed.options) }) != nil {
		closed.Ours = true
	}
	if closed.Problems = nil; closed.Ours {
		closed.close()
	}
	closed.CertificateProblems = nil
	closed.Problems = []report.Problem{{
		Severity: report.Error, Reason: report.Quarantined,
		Message: fmt.Sprintf("all requests for this Ingress get 503, because reading it failed: %v", fault),
	}}
	return closed.Result
}

// dependOnSpec adds to Refs the objects to which the spec of the Ingress refers, and the objects on which every Ingress
// depends.
func (r *reading) dependOnSpec() {
	r.depend(ir.Ref{Kind: kinds.IngressClass})
	if r.options.Namespaces != nil {
		r.depend(ir.Ref{Kind: kinds.Namespace, Name: r.Object.Namespace})
	}
	backend := func(b *networkingv1.IngressBackend) {
		if b != nil && b.Service != nil {
			r.depend(ir.Ref{Kind: kinds.Service, Namespace: r.Object.Namespace, Name: b.Service.Name})
		}
	}
	backend(r.Object.Spec.DefaultBackend)
	for _, rule := range r.Object.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for i := range rule.HTTP.Paths {
			backend(&rule.HTTP.Paths[i].Backend)
		}
	}
	for _, entry := range r.Object.Spec.TLS {
		if entry.SecretName != "" {
			r.depend(ir.Ref{Kind: kinds.Secret, Namespace: r.Object.Namespace, Name: entry.SecretName})
		}
	}
}

// close reads the hosts, paths and certificates of an Ingress after a first attempt to read the Ingress has panicked.
// The paths return 503. close reads each rule and each entry of spec.tls separately, so that another panic affects only
// this rule or entry.
func (r *reading) close() {
	r.unreadable, r.Closed = true, true
	if panics.Try(r.closedSettings) != nil {
		r.annotations = &annotations.Settings{AutoHTTPS: annotations.AutoHTTPSOff}
		if r.Object.Annotations[annotations.Prefix+"canary"] != "" {
			r.annotations.Canary = &ir.Canary{Closed: true}
		}
	}
	r.Canary = r.closedCanary()
	defaults := r.defaults()
	// Use the default TLS policy. Without it, handshakes for the hosts would allow TLS versions that the administrator
	// has disabled.
	r.LoadBalancing, r.TLS = defaults.LoadBalancing, defaults.TLS
	if r.Object.Annotations[annotations.Prefix+"auth-tls-secret"] != "" {
		// Client certificate settings apply to the whole host, including paths of other Ingresses, so reject all
		// requests for the host.
		r.ClientAuth = &ir.ClientAuth{Closed: true, Origin: r.origin()}
	}
	if r.Object.Annotations[report.ServerSnippet] != "" {
		// The snippet also applies to paths of other Ingresses.
		r.Server = &hosts.Server{Closed: true}
	}
	for i := range r.Object.Spec.Rules {
		// Ignore the panic, because the Ingress already has a problem.
		_ = panics.Try(func() { r.rule(&r.Object.Spec.Rules[i], fmt.Sprintf("spec.rules[%d]", i)) })
	}
	_ = panics.Try(r.defaultBackend) // The panic is ignored, as above.
	if r.Canary != nil {
		r.ClientAuth = nil
		return
	}
	if panics.Try(r.tls) != nil {
		r.Certificates, r.Absent, r.Implied = map[string]*ir.Certificate{}, nil, nil
	}
}

// closedSettings parses only the annotations that decide how paths are matched, or where certificates come from.
func (r *reading) closedSettings() {
	few := map[string]string{}
	for _, key := range []string{
		annotations.Prefix + "canary", annotations.Prefix + "rewrite-target", annotations.Prefix + "use-regex",
		annotations.OwnPrefix + "auto-https",
	} {
		if value, ok := r.Object.Annotations[key]; ok {
			few[key] = value
		}
	}
	r.annotations, _ = annotations.Parse(annotations.Settings{}, few)
}

// closedBackend returns the backend for a path that returns 503. If finding the Service panics, it returns a backend
// with an ID that no existing Service can have.
func (r *reading) closedBackend(b *networkingv1.IngressBackend, field string) (found *ir.Backend) {
	if panics.Try(func() { found = r.find(b, field, "") }) == nil {
		return found
	}
	return &ir.Backend{ID: backends.Prefix(r.Object.Namespace, ""), Namespace: r.Object.Namespace, Protocol: ir.TCP,
		Missing: true}
}
