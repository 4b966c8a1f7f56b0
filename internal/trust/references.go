package trust

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
)

// reference is what a part of the document needs from a Secret, besides the certificate of a host. It can be compared.
type reference struct {
	secret ir.Name
	// origin is the object that asks for it; field is where in that object. A reference without an origin gives no verdict.
	origin ir.Ref
	field  string
	// ca says that ca.crt is needed, pair that tls.crt and tls.key are. client takes the pair if there is one: it must be
	// good then, and one of ca.crt and the pair must be there.
	ca, pair, client bool
	// user is what needs the Secret, such as a host, and effect what happens to it while the Secret is no good, such as
	// "403 is the answer to every request". Verdicts have both.
	user, effect string
}

// references yields the references of each part of the document that changes, by a name of the part: none for a part that
// refers to no Secret.
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
			secret: h.ClientAuth.Secret, origin: h.ClientAuth.Origin, field: report.AnnotationField(report.ClientAuthSecret), ca: true,
			user: user, effect: "403 is the answer to every request",
		})
	}
	for _, r := range h.Routes {
		// All destinations of a route have the same.
		t := r.First().TLS
		if t == nil || t.Secret.IsZero() {
			continue
		}
		next := ofBackendTLS(t, "502 is the answer to every request")
		next.origin, next.field, next.user = ir.ParseRef(r.Origin), report.AnnotationField(report.BackendTLSSecret), user
		// An Ingress has many routes, and all of them refer to the same.
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

// ofBackend returns the reference of the health check. It has no origin: the verdict goes to the routes of the backend.
func ofBackend(id string, b *document.Backend) []*reference {
	if b == nil || b.LoadBalancing == nil || b.LoadBalancing.HealthCheck == nil || b.LoadBalancing.HealthCheck.Secured.Secret.IsZero() {
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

// at sets the origin and the field: an annotation of the Service, which the text names where another object asks for the
// port.
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
