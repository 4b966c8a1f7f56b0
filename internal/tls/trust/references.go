package trust

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// reference describes that the configuration refers to a Secret, for any purpose except the certificate of a host. It
// is comparable.
type reference struct {
	secret ir.Name
	// origin is the object that refers to the Secret, and field is the field of the object that contains the name of
	// the Secret. If origin is empty, problems of the Secret are not reported for this reference.
	origin ir.Ref
	field  string
	// ca is true if ca.crt is required. pair is true if tls.crt and tls.key are required. client is true if tls.crt and
	// tls.key, if present, are used as a client certificate: they must then be valid, and they are required if the
	// Secret does not contain ca.crt.
	ca, pair, client bool
	// user says what uses the Secret, such as the name of a host. effect says what happens while the Secret is invalid,
	// such as "every request gets 403". Both are parts of error messages.
	user, effect string
}

// references yields the references to Secrets for each host, listener group, backend and port that has changed. The
// string identifies what refers to the Secrets, such as "host example.com". If it no longer refers to any Secret, the
// references are nil.
func references(d *document.Delta) iter.Seq2[string, []*reference] {
	return func(yield func(string, []*reference) bool) {
		for name, h := range d.Hosts {
			if !yield("host "+name, ofHost(name, h)) {
				return
			}
		}
		for name, g := range d.ListenerGroups {
			if !yield("listener group "+name, ofGroup(g)) {
				return
			}
		}
		for id, b := range d.Backends {
			if !yield("backend "+id, ofBackend(id, b)) {
				return
			}
		}
		for name, p := range d.Ports {
			if !yield("port "+name, ofPort(name, p)) {
				return
			}
		}
	}
}

func ofHost(name string, h *document.Host) []*reference {
	if h == nil {
		return nil
	}
	var all []*reference
	user := cmp.Or(name, "every other host")
	if h.ClientAuth != nil && !h.ClientAuth.Secret.IsZero() {
		all = append(all, &reference{
			secret: h.ClientAuth.Secret, origin: h.ClientAuth.Origin,
			field: report.AnnotationField(report.ClientAuthSecret), ca: true,
			user: user, effect: "every request gets 403",
		})
	}
	for _, r := range h.Routes {
		// All backends of a route have the same TLS settings.
		t := r.First().TLS
		if t == nil || t.Secret.IsZero() {
			continue
		}
		next := ofBackendTLS(t, "every request gets 502")
		next.origin, next.field, next.user = ir.ParseRef(r.Origin),
			report.AnnotationField(report.BackendTLSSecret), user
		// Several routes of an Ingress usually refer to the same Secret, so add the same reference only once.
		if !slices.ContainsFunc(all, func(known *reference) bool { return *known == *next }) {
			all = append(all, next)
		}
	}
	return all
}

func ofGroup(g *document.ListenerGroup) (all []*reference) {
	if g == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(g.Hosts)) {
		all = append(all, ofHost(name, g.Hosts[name])...)
	}
	return all
}

// ofBackend returns the reference to the Secret of the backend's health check. It sets no origin, because the problems
// of this Secret are already reported for the routes of the backend.
func ofBackend(id string, b *document.Backend) []*reference {
	if b == nil || b.LoadBalancing == nil || b.LoadBalancing.HealthCheck == nil ||
		b.LoadBalancing.HealthCheck.Secured.Secret.IsZero() {
		return nil
	}
	next := ofBackendTLS(&b.LoadBalancing.HealthCheck.Secured, "")
	next.user = id
	return []*reference{next}
}

func ofPort(name string, p *document.Port) []*reference {
	if p == nil {
		return nil
	}
	var all []*reference
	if p.TLS != nil && !p.TLS.Secret.IsZero() {
		next := &reference{secret: p.TLS.Secret, pair: true, effect: "every TLS handshake fails"}
		all = append(all, next.at(p, name, report.StreamTLSSecret))
	}
	if p.BackendTLS != nil && !p.BackendTLS.Secret.IsZero() {
		next := ofBackendTLS(p.BackendTLS, "every connection is closed")
		all = append(all, next.at(p, name, report.StreamBackendTLSSecret))
	}
	return all
}

// The method at sets which object, field and user a reference from a TCP port has, and returns the reference. If a
// Service defines the port, the field is the annotation of the Service. If a ConfigMap defines the port, the field is
// the key in the ConfigMap; the user then also names the annotation, which belongs to the Service and not to the
// ConfigMap.
func (r *reference) at(p *document.Port, name, annotation string) *reference {
	r.origin, r.user = p.Origin, "port "+name
	if p.OfService() {
		r.field = report.AnnotationField(annotation)
		return r
	}
	_, number, _ := strings.Cut(name, "/")
	service := p.Backend[:max(strings.LastIndexByte(p.Backend, '/'), 0)]
	r.field, r.user = "data["+number+"]", r.user+" ("+annotation+" of Service/"+service+")"
	return r
}

func ofBackendTLS(t *ir.BackendTLS, effect string) *reference {
	return &reference{secret: t.Secret, ca: t.Verify, client: true, effect: effect}
}
