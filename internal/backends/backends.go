// Package backends finds the port of a Service that an Ingress, or an entry of a ConfigMap, names.
package backends

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// Options decide about what may be a backend.
type Options struct {
	// ExternalNames is that of settings.Config: where Services of type ExternalName may lead. What is no known word refuses
	// them.
	ExternalNames string
}

// Find returns the backend for a port of a Service. The port is its number, its name or what it leads to, as in
// ingress-nginx.
//
// A Service or a port that does not exist is a backend too, one without endpoints: what leads to it must not lead
// somewhere else. The problem says what is missing, with "name" or "port" for its field; the caller adds what happens
// until it is there.
func Find(s *snapshot.Snapshot, service ir.Ref, port string, protocol ir.Protocol, o Options) (*ir.Backend, *report.Problem) {
	b := &ir.Backend{
		ID: id(service, port, protocol), Namespace: service.Namespace, Service: service.Name, Protocol: protocol, Missing: true,
	}
	object, ok := snapshot.Of[*corev1.Service](s).Get(service.Namespace, service.Name)
	if !ok {
		return b, problem(report.ServiceNotFound, "name", "there is no Service %s/%s", service.Namespace, service.Name)
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
	b.ID = id(service, strconv.Itoa(int(found.Port)), protocol)
	b.PortName, b.Missing = found.Name, false
	b.NotReadyToo = object.Spec.PublishNotReadyAddresses
	if ip := object.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		b.VirtualAddress = net.JoinHostPort(ip, strconv.Itoa(int(found.Port)))
	}
	b.LoadBalancing.ClientIP = clientIP(object)
	return b, nil
}

// FindFirst is Find for the first port of a Service, by TCP.
func FindFirst(s *snapshot.Snapshot, service ir.Ref, o Options) (*ir.Backend, *report.Problem) {
	port := ""
	if object, ok := snapshot.Of[*corev1.Service](s).Get(service.Namespace, service.Name); ok && len(object.Spec.Ports) > 0 {
		port = strconv.Itoa(int(object.Spec.Ports[0].Port))
	}
	b, p := Find(s, service, port, ir.TCP, o)
	if p != nil && port == "" && p.Field == "port" {
		p.Message = fmt.Sprintf("the Service %s/%s has no port", service.Namespace, service.Name)
	}
	return b, p
}

// clientIP is for how long a Service wants its clients kept at their endpoint; zero is without.
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

// id escapes what a manifest may have for a name, so that one with a slash in it is no other backend's.
func id(service ir.Ref, port string, protocol ir.Protocol) string {
	port = url.PathEscape(port)
	if protocol == ir.UDP {
		port += "/udp"
	}
	return Prefix(service.Namespace, service.Name) + port
}

// Prefix is what the IDs of all backends of a Service begin with, and no others.
func Prefix(namespace, service string) string {
	return namespace + "/" + url.PathEscape(service) + "/"
}

// findPort returns the port of a Service by number, by name or by what it leads to, as ingress-nginx looks for it. There
// is no port 0 and none without a name to be found: that is what a port that nobody wrote looks like.
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
