// Package backends finds the Service port that an Ingress or an entry of a ConfigMap names.
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

// Options decide which Services may be backends.
type Options struct {
	// ExternalNames limits the targets of Services of type ExternalName. It has the same values as
	// settings.Config.ExternalNames. An unknown value rejects all such Services.
	ExternalNames string
}

// Find returns the backend for a port of a Service. As in ingress-nginx, port is the number, the name or the target
// port.
//
// For a Service or port that does not exist it returns a backend without endpoints, so that requests do not go to
// another backend. The problem says what is missing, and its field is "name" or "port". The caller adds what happens
// until the Service or port exists.
func Find(s *snapshot.Snapshot, service ir.Ref, port string, protocol ir.Protocol, o Options) (*ir.Backend,
	*report.Problem) {
	b := &ir.Backend{
		ID: id(service, port, protocol), Namespace: service.Namespace, Service: service.Name, Protocol: protocol,
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
	b.ID = id(service, strconv.Itoa(int(found.Port)), protocol)
	b.PortName, b.Missing = found.Name, false
	b.NotReadyToo = object.Spec.PublishNotReadyAddresses
	if ip := object.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		b.VirtualAddress = net.JoinHostPort(ip, strconv.Itoa(int(found.Port)))
	}
	b.LoadBalancing.ClientIP = clientIP(object)
	return b, nil
}

// FindFirst works like Find for the first port of a Service, over TCP.
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

// clientIP returns how long a Service with sessionAffinity ClientIP keeps a client at its endpoint. Zero means no
// affinity.
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

// id returns the ID of a backend. It escapes the names from manifests, so that a name with a slash cannot produce the
// ID of another backend.
func id(service ir.Ref, port string, protocol ir.Protocol) string {
	port = url.PathEscape(port)
	if protocol == ir.UDP {
		port += "/udp"
	}
	return Prefix(service.Namespace, service.Name) + port
}

// Prefix returns the common prefix of the IDs of all backends of a Service. No other backend has this prefix.
func Prefix(namespace, service string) string {
	return namespace + "/" + url.PathEscape(service) + "/"
}

// findPort returns the port of a Service by number, by name or by target port, in the order in which ingress-nginx
// looks for it. It returns nil for "" and "0", because these stand for a port that is not set.
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
