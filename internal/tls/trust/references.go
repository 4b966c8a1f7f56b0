package trust

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
)

// reference is the use of a Secret by a part of the document, except as the certificate of a host. It is comparable.
type reference struct {
	secret ir.Name
	// origin is the object that names the Secret, and field is the position in that object. A reference without an
	// origin gets no verdict.
	origin ir.Ref
	field  string
	// ca means that ca.crt is required, and pair that tls.crt and tls.key are required. client uses the pair if there
	// is one: the pair must then be valid, and the Secret must contain ca.crt or the pair.
	ca, pair, client bool
	// user is the part that uses the Secret, such as a host. effect describes what happens while the Secret is invalid,
	// such as "every request gets 403". Verdicts contain both.
	user, effect string
}

// references yields the name and the references of each changed part of the document. The references are nil for a part
// that uses no Secret.
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
		// An Ingress usually has several routes with the same reference.
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

// ofBackend returns the reference of the health check. It has no origin, because the routes of the backend get the
// verdict.
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

// at sets the origin, the field and the user. If the origin is a Service, the field is its annotation. Otherwise user
// names the annotation of the Service, because another object defines the port.
func (r *reference) at(p *document.Port, name, annotation string) *reference {
	r.origin, r.user = p.Origin, "port "+name
	if p.Origin.Kind == kinds.Service {
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
