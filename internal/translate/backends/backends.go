// Package backends finds the Service and port to which an Ingress or an entry of a ConfigMap refers.
package backends

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// Options restrict which Services may be used as backends.
type Options struct {
	// ExternalNames restricts the targets of Services of type ExternalName. The values are the same as for
	// settings.Config.ExternalNames. Any other value rejects all such Services.
	ExternalNames string
}

// Find returns the backend for a port of a Service. As in ingress-nginx, port may be the number, the name or the target
// port of a Service port.
//
// If the Service or port does not exist, Find returns a problem, and a backend without endpoints, so that requests are
// not sent to any other backend. Problem.Field is "name" if the Service is missing, and "port" if the port is missing.
// The caller must append the effect on requests to Problem.Message.
func Find(s *snapshot.Snapshot, service ir.Ref, port string, protocol ir.Protocol, o Options) (*ir.Backend,
	*report.Problem) {
	b := &ir.Backend{
		ID: ID(service, port, protocol), Namespace: service.Namespace, Service: service.Name, Protocol: protocol,
		Missing: true,
	}
	object, ok := snapshot.Of[*corev1.Service](s).Get(service.Namespace, service.Name)
	if !ok {
		return b, problem(report.ServiceNotFound, "name", "the Service %s/%s does not exist",
			service.Namespace, service.Name)
	}
	if object.Spec.Type == corev1.ServiceTypeExternalName {
		return external(b, object, port, o)
	}
	name := corev1.Protocol(strings.ToUpper(string(protocol)))
	found := findPort(object, port, name)
	if found == nil {
		return b, problem(report.InvalidBackend, "port",
			"the Service %s/%s has no %s port %s", service.Namespace, service.Name, name, port)
	}
	b.ID = ID(service, strconv.Itoa(int(found.Port)), protocol)
	b.PortName, b.Missing = found.Name, false
	b.NotReadyToo = object.Spec.PublishNotReadyAddresses
	if ip := object.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		b.VirtualAddress = net.JoinHostPort(ip, strconv.Itoa(int(found.Port)))
	}
	b.LoadBalancing.ClientIP = clientIP(object)
	return b, nil
}

// FindFirst works like Find, but returns the backend for the first port of a Service. The protocol is TCP.
func FindFirst(s *snapshot.Snapshot, service ir.Ref, o Options) (*ir.Backend, *report.Problem) {
	port := ""
	if object, ok := snapshot.Of[*corev1.Service](s).Get(service.Namespace, service.Name); ok &&
		len(object.Spec.Ports) > 0 {
		port = strconv.Itoa(int(object.Spec.Ports[0].Port))
	}
	b, p := Find(s, service, port, ir.TCP, o)
	if p != nil && port == "" && p.Field == "port" {
		p.Message = fmt.Sprintf("the Service %s/%s has no ports", service.Namespace, service.Name)
	}
	return b, p
}

// clientIP returns how long requests of a client go to the same endpoint because of sessionAffinity ClientIP. It
// returns zero if the Service has no session affinity.
func clientIP(service *corev1.Service) time.Duration {
	if service.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	seconds := corev1.DefaultClientIPServiceAffinitySeconds
	if c := service.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		if given := *c.ClientIP.TimeoutSeconds; given > 0 {
			seconds = given
		}
	}
	return time.Duration(seconds) * time.Second
}

func problem(reason report.Reason, field, message string, args ...any) *report.Problem {
	return &report.Problem{Severity: report.Error, Reason: reason, Field: field, Message: fmt.Sprintf(message, args...)}
}

// ID returns the ID of the backend for a port of a Service. Names are escaped, so that a name with a slash cannot
// result in the ID of another backend.
func ID(service ir.Ref, port string, protocol ir.Protocol) string {
	port = url.PathEscape(port)
	if protocol == ir.UDP {
		port += "/udp"
	}
	return Prefix(service.Namespace, service.Name) + port
}

// Prefix returns the common prefix of the IDs of all backends of a Service. The IDs of other backends do not start with
// it.
func Prefix(namespace, service string) string {
	return namespace + "/" + url.PathEscape(service) + "/"
}

// findPort returns the port of a Service that matches wanted: a port with this number, or else with this name, or else
// with this target port, as in ingress-nginx. It returns nil if there is no such port, or if wanted is "" or "0", which
// means that no port is set.
func findPort(service *corev1.Service, wanted string, protocol corev1.Protocol) *corev1.ServicePort {
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
