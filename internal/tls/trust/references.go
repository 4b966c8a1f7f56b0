package trust

import (
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/references"
	"github.com/k8singress/k8singress/internal/model/report"
)

// reference records which object refers to a Secret, and which contents of the Secret it needs. References to the
// certificates of hosts are not included.
type reference = references.Reference[ir.Name, needs]

// needs says which contents of a Secret are needed.
type needs struct {
	// ca is true if ca.crt is required. pair is true if tls.crt and tls.key are required. client is true if tls.crt and
	// tls.key, if present, are used as a client certificate: they must then be valid, and they are required if the
	// Secret does not contain ca.crt.
	ca, pair, client bool
	// effect says what happens while the Secret is invalid, such as "every request gets 403". It is part of error
	// messages.
	effect string
}

// referencesOf returns the references to Secrets for each host, listener group, backend and port that has changed.
func referencesOf(d *document.Delta) map[string][]reference {
	all := references.Of(d, ofHost)
	for id, b := range d.Backends {
		all["backend "+id] = ofBackend(id, b)
	}
	for name, p := range d.Ports {
		all["port "+name] = ofPort(name, p)
	}
	return all
}

func ofHost(user string, h *document.Host) (all []reference) {
	if h.ClientAuth != nil && !h.ClientAuth.Secret.IsZero() {
		all = append(all, reference{
			Key: h.ClientAuth.Secret, Origin: h.ClientAuth.Origin,
			Field: report.AnnotationField(report.ClientAuthSecret), User: user,
			Needs: needs{ca: true, effect: "every request gets 403"},
		})
	}
	for _, r := range h.Routes {
		// All backends of a route have the same TLS settings, so use the settings of the first backend.
		t := r.First().TLS
		if t == nil || t.Secret.IsZero() {
			continue
		}
		next := ofBackendTLS(t, "every request gets 502")
		next.Origin, next.Field, next.User = ir.ParseRef(r.Origin),
			report.AnnotationField(report.BackendTLSSecret), user
		// Several routes of an Ingress usually refer to the same Secret, so add the same reference only once.
		if !slices.Contains(all, next) {
			all = append(all, next)
		}
	}
	return all
}

// ofBackend returns the reference to the Secret of the backend's health check. It sets no origin (the object to which
// problems are reported), because the problems of this Secret are already reported for the routes of the backend.
func ofBackend(id string, b *document.Backend) []reference {
	if b == nil || b.LoadBalancing == nil || b.LoadBalancing.HealthCheck == nil ||
		b.LoadBalancing.HealthCheck.Secured.Secret.IsZero() {
		return nil
	}
	next := ofBackendTLS(&b.LoadBalancing.HealthCheck.Secured, "")
	next.User = id
	return []reference{next}
}

func ofPort(name string, p *document.Port) (all []reference) {
	if p == nil {
		return nil
	}
	if p.TLS != nil && !p.TLS.Secret.IsZero() {
		next := reference{Key: p.TLS.Secret, Needs: needs{pair: true, effect: "every TLS handshake fails"}}
		all = append(all, at(next, p, name, report.StreamTLSSecret))
	}
	if p.BackendTLS != nil && !p.BackendTLS.Secret.IsZero() {
		next := ofBackendTLS(p.BackendTLS, "every connection is closed")
		all = append(all, at(next, p, name, report.StreamBackendTLSSecret))
	}
	return all
}

// at(r, p, name, annotation) sets the fields Origin, Field and User of the reference r from the TCP port p, and returns
// the reference. If a Service defines the port, Field is the annotation of the Service. If a ConfigMap defines the
// port, Field is the key in the ConfigMap, and User also contains the annotation of the Service that refers to the
// Secret.
func at(r reference, p *document.Port, name, annotation string) reference {
	r.Origin, r.User = p.Origin, "port "+name
	if p.OfService() {
		r.Field = report.AnnotationField(annotation)
		return r
	}
	_, number, _ := strings.Cut(name, "/")
	service := p.Backend[:max(strings.LastIndexByte(p.Backend, '/'), 0)]
	r.Field, r.User = "data["+number+"]", r.User+" ("+annotation+" of Service/"+service+")"
	return r
}

func ofBackendTLS(t *ir.BackendTLS, effect string) reference {
	return reference{Key: t.Secret, Needs: needs{ca: t.Verify, client: true, effect: effect}}
}
