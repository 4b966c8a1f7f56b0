package ingress

import (
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
)

// backend returns nil for what is no Service at all. A Service or a port that does not exist is a backend without
// endpoints, so that requests get 503 and not somebody else's answer.
func (r *reading) backend(b *networkingv1.IngressBackend, field string) *ir.Backend {
	switch {
	case b.Resource != nil:
		r.problem(report.Error, report.InvalidBackend, field+".resource", "backends other than Services are not supported; the path is left out")
		return nil
	case b.Service == nil:
		r.problem(report.Error, report.InvalidBackend, field, "there is no backend: name a Service; the path is left out")
		return nil
	}
	ref := ir.Ref{Kind: kinds.Service, Namespace: r.Object.Namespace, Name: b.Service.Name}
	r.depend(ref)
	wanted := b.Service.Port.Name
	if wanted == "" {
		wanted = strconv.Itoa(int(b.Service.Port.Number))
	}
	service, ok := r.snapshot.Services.Get(ref.Namespace, ref.Name)
	if !ok {
		r.problem(report.Error, report.NoService, field+".service.name",
			"there is no Service %s/%s: requests get 503 until there is one", ref.Namespace, ref.Name)
		return missing(ref, wanted)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		r.problem(report.Error, report.InvalidBackend, field+".service.name",
			"the Service %s/%s is of type ExternalName, which is not supported yet: requests get 503", ref.Namespace, ref.Name)
		return missing(ref, wanted)
	}
	port := FindPort(service, wanted, corev1.ProtocolTCP)
	if port == nil {
		r.problem(report.Error, report.InvalidBackend, field+".service.port",
			"the Service %s/%s has no TCP port %s: requests get 503", ref.Namespace, ref.Name, wanted)
		return missing(ref, wanted)
	}
	return &ir.Backend{
		ID: id(ref, strconv.Itoa(int(port.Port))), Namespace: ref.Namespace, Service: ref.Name, Protocol: ir.TCP, PortName: port.Name,
	}
}

func missing(service ir.Ref, port string) *ir.Backend {
	return &ir.Backend{
		ID: id(service, port), Namespace: service.Namespace, Service: service.Name, Protocol: ir.TCP, Missing: true,
	}
}

// id escapes what a manifest may have for a name, so that one with a slash in it is no other backend's.
func id(service ir.Ref, port string) string {
	return service.Namespace + "/" + url.PathEscape(service.Name) + "/" + url.PathEscape(port)
}

// FindPort returns the port of a Service by number, by name or by what it leads to, as ingress-nginx looks for it. There
// is no port 0 and none without a name to be found: that is what a port that nobody wrote looks like.
func FindPort(service *corev1.Service, wanted string, protocol corev1.Protocol) *corev1.ServicePort {
	if wanted == "" || wanted == "0" {
		return nil
	}
	for _, matches := range []func(*corev1.ServicePort) bool{
		func(p *corev1.ServicePort) bool { return strconv.Itoa(int(p.Port)) == wanted },
		func(p *corev1.ServicePort) bool { return p.Name == wanted },
		func(p *corev1.ServicePort) bool { return p.TargetPort.String() == wanted },
	} {
		for i := range service.Spec.Ports {
			p := &service.Spec.Ports[i]
			if (p.Protocol == protocol || p.Protocol == "" && protocol == corev1.ProtocolTCP) && matches(p) {
				return p
			}
		}
	}
	return nil
}
