// Package serviceports plans the ports of the controller's own Service: which port entries the Service needs for the
// open TCP and UDP ports, and which of the open ports clients cannot reach. It does no I/O; package status writes the
// result.
package serviceports

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// Situation is the input of Make: the controller's own Service, one of its pods, and the open TCP and UDP ports.
type Situation struct {
	// Name is the name of the controller's own Service.
	Name ir.Name
	// Service is the controller's own Service, or nil if it does not exist. Its managedFields only have to contain the
	// entries of the field manager kinds.PortsManager.
	Service *corev1.Service
	// Publish is set if the Service must contain a port entry for each of the Routes. If it is false, all port entries
	// that we own are removed from the Service.
	Publish bool
	// Routes are the routes of all open TCP and UDP ports, sorted by protocol and port.
	Routes []*ir.StreamRoute
	// Pod is one of the controller's pods, or nil if no pod is known.
	Pod *corev1.Pod
	// Loopback is set if the TCP and UDP ports only listen on loopback addresses.
	Loopback bool
}

// Plan is the result of Make: the port entries to write to the Service, and the problems to report.
type Plan struct {
	// Ports are all port entries of the Service that our field manager should own.
	Ports []corev1.ServicePort
	// Write is set if the port entries that our field manager owns differ from Ports.
	Write bool
	// Verdicts contains the problems with open ports that clients cannot reach. They are reported on the objects that
	// define the ports.
	Verdicts []*report.Verdict
}

// Make plans the changes to the ports of the controller's own Service. Port entries that other field managers own are
// not changed, even if they have one of our port numbers, because they may already forward to the right port of the
// pods.
func Make(s Situation) Plan {
	p := &planning{Situation: s}
	if s.Service != nil {
		p.theirs, p.own = entriesOf(s.Service)
	}
	if s.Publish {
		p.publish()
	}
	if p.Loopback && (s.Publish || s.Pod != nil) {
		p.warn(report.PortUnreachable, p.Routes,
			"stream_bind contains only loopback addresses, so neither a Service nor clients outside the pod can "+
				"connect to %s: remove stream_bind from the Caddyfile, or add other addresses")
	} else {
		p.checkNodes()
	}
	return Plan{Ports: p.wanted, Write: p.differs(), Verdicts: p.verdicts}
}

type planning struct {
	Situation
	theirs   []corev1.ServicePort
	own      []corev1.ServicePort
	wanted   []corev1.ServicePort
	verdicts []*report.Verdict
}

func (p *planning) publish() {
	switch {
	case p.Service == nil:
		p.warn(report.PortNotPublished, p.Routes,
			"publish_service names the Service "+p.Name.String()+
				", which does not exist: create it, so that %s can be added")
	case p.Service.Spec.Type == corev1.ServiceTypeExternalName:
		p.warn(report.PortNotPublished, p.Routes,
			"the Service "+p.Name.String()+
				" has the type ExternalName, and forwards nothing to pods: set publish_service to a Service that "+
				"selects the controller's pods, so that %s can be added")
	case p.Service.Spec.ClusterIP == corev1.ClusterIPNone:
		p.warn(report.PortNotPublished, p.Routes,
			"the Service "+p.Name.String()+
				" is headless, and forwards nothing to pods: set publish_service to a Service with a cluster IP, so "+
				"that %s can be added")
	case len(p.theirs) == 1 && p.theirs[0].Name == "":
		p.warn(report.PortNotPublished, slices.DeleteFunc(slices.Clone(p.Routes), p.isServed),
			"the only port of the Service "+p.Name.String()+
				" has no name, but a Service with several ports requires names: give the only port a name, so "+
				"that %s can be added")
	default:
		p.entries()
	}
}

// entries adds the wanted port entries to p. Each open TCP or UDP port needs an entry in the Service, unless another
// field manager already owns an entry for the same port. If this entry forwards to a different port of the pods,
// entries adds a warning.
func (p *planning) entries() {
	var elsewhere []*ir.StreamRoute
	for _, route := range p.Routes {
		switch i := slices.IndexFunc(p.theirs, isFor(route)); {
		case i < 0:
			p.wanted = append(p.wanted, p.entry(route))
		case !leadsTo(p.theirs[i], route.Port):
			elsewhere = append(elsewhere, route)
		}
	}
	p.warn(report.PortNotPublished, elsewhere,
		"the Service "+p.Name.String()+
			" already has a port, set by another field manager, that forwards %s to a different port of the pods: "+
			"remove that port from the Service, or set its targetPort to the same number")
}

// entry returns the Service port entry for an open TCP or UDP port. If we already own an entry for this port, its name
// is kept, because renaming it would have no benefit.
func (p *planning) entry(route *ir.StreamRoute) corev1.ServicePort {
	entry := corev1.ServicePort{
		Protocol: protocolOf(route), Port: int32(route.Port), TargetPort: intstr.FromInt32(int32(route.Port)),
	}
	if i := slices.IndexFunc(p.own, isFor(route)); i >= 0 && p.own[i].Name != "" {
		entry.Name = p.own[i].Name
		return entry
	}
	base := fmt.Sprintf("%s-%d", route.Protocol, route.Port)
	entry.Name = base
	for n := 2; p.isTaken(entry.Name); n++ {
		entry.Name = fmt.Sprintf("%s-%d", base, n)
	}
	return entry
}

func (p *planning) isTaken(name string) bool {
	named := func(e corev1.ServicePort) bool { return e.Name == name }
	return slices.ContainsFunc(p.theirs, named) || slices.ContainsFunc(p.own, named)
}

// isServed reports whether the Service forwards a port to the pods, no matter which field manager owns the entry.
func (p *planning) isServed(route *ir.StreamRoute) bool {
	all := append(slices.Clone(p.theirs), p.wanted...)
	return slices.ContainsFunc(all, func(e corev1.ServicePort) bool {
		return isFor(route)(e) &&
			leadsTo(e, route.Port)
	})
}

// differs reports whether the port entries that we own in the Service differ from the wanted entries. The order of the
// entries does not matter.
func (p *planning) differs() bool {
	return len(p.own) != len(p.wanted) || slices.ContainsFunc(p.wanted, func(e corev1.ServicePort) bool {
		return !slices.ContainsFunc(p.own, func(o corev1.ServicePort) bool {
			return o.Name == e.Name && o.Protocol == e.Protocol && o.Port == e.Port && o.TargetPort == e.TargetPort
		})
	})
}

// isFor returns a function that reports whether a port entry of a Service has the port and the protocol of a route.
func isFor(route *ir.StreamRoute) func(corev1.ServicePort) bool {
	return func(e corev1.ServicePort) bool { return e.Port == int32(route.Port) && e.Protocol == protocolOf(route) }
}

// leadsTo reports whether an entry of a Service forwards to the given port of the pods. A target port that is a name is
// assumed to be correct.
func leadsTo(e corev1.ServicePort, port uint16) bool {
	return e.TargetPort.Type == intstr.String || e.TargetPort.IntVal == int32(port) || e.TargetPort.IntVal == 0 &&
		e.Port == int32(port)
}

func protocolOf(route *ir.StreamRoute) corev1.Protocol {
	if route.Protocol == ir.UDP {
		return corev1.ProtocolUDP
	}
	return corev1.ProtocolTCP
}
