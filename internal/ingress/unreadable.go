package ingress

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/backends"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// Translate reads one Ingress. A panic becomes a verdict on it: its paths answer 503, as far as they can be read, because they may be
// there to keep requests from a path of another Ingress. What cannot be read even so is left out. An Ingress whose class cannot be
// read is taken for ours.
func Translate(s *snapshot.Snapshot, object *networkingv1.Ingress, o Options) *Result {
	return readCarefully((*reading).read, newReading(s, object, o))
}

func readCarefully(read func(*reading), r *reading) *Result {
	fault := panics.Try(func() { read(r) })
	if fault == nil {
		return r.Result
	}
	closed := newReading(r.snapshot, r.Object, r.options)
	// What it would depend on if it could be read may be what is wrong with it.
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
		Message: fmt.Sprintf("all requests for this Ingress get 503, because reading it fails: %v", fault),
	}}
	return closed.Result
}

// dependOnSpec names the objects that the Ingress itself names, and those that every Ingress depends on.
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

// close reads hosts, paths and certificates, each by itself, and closes the paths.
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
	// Without it, the handshakes for its hosts would have no policy, and so versions that are turned off.
	r.LoadBalancing, r.TLS = defaults.LoadBalancing, defaults.TLS
	if r.Object.Annotations[annotations.Prefix+"auth-tls-secret"] != "" {
		// It would hold for the paths of others, too.
		r.ClientAuth = &ir.ClientAuth{Closed: true, Origin: r.origin()}
	}
	for i := range r.Object.Spec.Rules {
		_ = panics.Try(func() { r.rule(&r.Object.Spec.Rules[i], fmt.Sprintf("spec.rules[%d]", i)) }) // It is known that something is wrong.
	}
	_ = panics.Try(r.defaultBackend) // As above.
	if r.Canary != nil {
		r.ClientAuth = nil
		return
	}
	if panics.Try(r.tls) != nil {
		r.Certificates, r.Absent, r.Implied = map[string]*ir.Certificate{}, nil, nil
	}
}

// closedSettings reads the annotations that say how paths are meant, and where the certificates come from. No other counts.
func (r *reading) closedSettings() {
	few := map[string]string{}
	for _, key := range []string{
		annotations.Prefix + "canary", annotations.Prefix + "rewrite-target", annotations.Prefix + "use-regex", annotations.OwnPrefix + "auto-https",
	} {
		if value, ok := r.Object.Annotations[key]; ok {
			few[key] = value
		}
	}
	r.annotations, _ = annotations.Parse(annotations.Settings{}, few)
}

// closedBackend is the backend of a path that is closed. Where the Service is what cannot be read, it is one that no Service has.
func (r *reading) closedBackend(b *networkingv1.IngressBackend, field string) (found *ir.Backend) {
	if panics.Try(func() { found = r.find(b, field, "") }) == nil {
		return found
	}
	return &ir.Backend{ID: backends.Prefix(r.Object.Namespace, ""), Namespace: r.Object.Namespace, Protocol: ir.TCP, Missing: true}
}
