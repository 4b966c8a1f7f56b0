package document

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
)

// Reference is what a part of the document refers to a Secret for, besides the certificate of a host. It is not part of
// the JSON, and can be compared.
type Reference struct {
	// Secret is "namespace/name".
	Secret string
	// Origin is the object that asks for it, as "Kind/namespace/name"; Field is where in that object. Without an Origin there
	// is nobody to be told of the Secret.
	Origin, Field string
	// CA says that ca.crt is needed, Pair that tls.crt and tls.key are. Client takes the pair if there is one: it must be
	// good then, and one of the two must be there.
	CA, Pair, Client bool
	// For is what it is asked for, such as a host, and Without what becomes of that while the Secret is no good, such as
	// "403 is the answer to every request". Both are for people.
	For, Without string
}

// References yields the references of all parts that change, by a name of the part; none for a part that refers to no Secret.
func (d *Delta) References() iter.Seq2[string, []*Reference] {
	return func(yield func(string, []*Reference) bool) {
		for name, h := range d.Hosts {
			if !yield("host "+name, h.references(name)) {
				return
			}
		}
		for id, b := range d.Backends {
			if !yield("backend "+id, b.references(id)) {
				return
			}
		}
		for name, p := range d.Ports {
			if !yield("port "+name, p.references(name)) {
				return
			}
		}
	}
}

const (
	clientAuthField = "metadata.annotations[nginx.ingress.kubernetes.io/auth-tls-secret]"
	backendTLSField = "metadata.annotations[nginx.ingress.kubernetes.io/proxy-ssl-secret]"
)

func (h *Host) references(name string) []*Reference {
	if h == nil {
		return nil
	}
	var all []*Reference
	if h.ClientAuth != nil && h.ClientAuth.Secret != "" {
		all = append(all, &Reference{
			Secret: h.ClientAuth.Secret, Origin: h.ClientAuth.Origin, Field: clientAuthField, CA: true,
			For: cmp.Or(name, everyOther), Without: "403 is the answer to every request",
		})
	}
	for _, r := range h.Routes {
		if r.TLS == nil || r.TLS.Secret == "" {
			continue
		}
		next := backendTLS(r.TLS)
		next.Origin, next.Field, next.For = r.Origin, backendTLSField, cmp.Or(name, everyOther)
		// An Ingress has many routes, and all of them refer to the same.
		if !slices.ContainsFunc(all, func(known *Reference) bool { return *known == *next }) {
			all = append(all, next)
		}
	}
	return all
}

const everyOther = "every other host"

// references are those of the health check. Who has asked for it is told for its routes.
func (b *Backend) references(id string) []*Reference {
	if b == nil || b.LoadBalancing == nil || b.LoadBalancing.HealthCheck == nil || b.LoadBalancing.HealthCheck.Secured.Secret == "" {
		return nil
	}
	next := backendTLS(&b.LoadBalancing.HealthCheck.Secured)
	next.For = id
	return []*Reference{next}
}

func (p *Port) references(name string) []*Reference {
	var all []*Reference
	if p == nil {
		return all
	}
	if p.TLS != nil && p.TLS.Secret != "" {
		next := &Reference{Secret: p.TLS.Secret, Pair: true, Without: "every TLS handshake fails"}
		all = append(all, next.ofPort(p, name, streamTLSAnnotation))
	}
	if p.BackendTLS != nil && p.BackendTLS.Secret != "" {
		next := backendTLS(p.BackendTLS)
		next.Without = "every connection is closed"
		all = append(all, next.ofPort(p, name, streamBackendTLSAnnotation))
	}
	return all
}

const (
	streamTLSAnnotation        = "k8singress.io/stream-tls-secret"
	streamBackendTLSAnnotation = "k8singress.io/stream-backend-tls-secret"
)

// ofPort says who is told, and where to look: at an annotation of the Service, also where somebody else asks for the port.
func (r *Reference) ofPort(p *Port, name, annotation string) *Reference {
	r.Origin, r.For = p.Origin, "port "+name
	if strings.HasPrefix(p.Origin, "Service/") {
		r.Field = "metadata.annotations[" + annotation + "]"
		return r
	}
	_, number, _ := strings.Cut(name, "/")
	service := p.Backend[:max(strings.LastIndexByte(p.Backend, '/'), 0)]
	r.Field, r.For = "data["+number+"]", r.For+" ("+annotation+" of Service/"+service+")"
	return r
}

func backendTLS(t *ir.BackendTLS) *Reference {
	return &Reference{Secret: t.Secret, CA: t.Verify, Client: true, Without: "502 is the answer to every request"}
}
