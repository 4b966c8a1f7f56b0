package serviceports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
)

// warn adds a problem for each object that defines one or more of the ports in routes. In text, %s is replaced with the
// list of the object's ports.
func (p *planning) warn(reason report.Reason, routes []*ir.StreamRoute, text string) {
	var origins []ir.Origin
	of := map[ir.Origin][]*ir.StreamRoute{}
	for _, route := range routes {
		if of[route.Origin] == nil {
			origins = append(origins, route.Origin)
		}
		of[route.Origin] = append(of[route.Origin], route)
	}
	for _, origin := range origins {
		p.verdicts = append(p.verdicts, &report.Verdict{Object: origin, Problems: []report.Problem{{
			Severity: report.Warning, Reason: reason, Message: fmt.Sprintf(text, listed(of[origin])),
		}}})
	}
}

// maxListed is the maximum number of ports in a message.
const maxListed = 10

// listed returns a list of ports for messages, such as "the ports 5432/TCP, 53/UDP".
func listed(routes []*ir.StreamRoute) string {
	var words []string
	for _, route := range routes[:min(len(routes), maxListed)] {
		words = append(words, fmt.Sprintf("%d/%s", route.Port, protocolOf(route)))
	}
	if more := len(routes) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	if len(routes) == 1 {
		return "port " + words[0]
	}
	return "the ports " + strings.Join(words, ", ")
}

// Refused returns the problem that the ports could not be added to the controller's own Service. why is the reason. The
// problem is reported on the Service.
func Refused(service *corev1.Service, why string) *report.Verdict {
	return &report.Verdict{
		Object: ir.Ref{Kind: kinds.Service, Namespace: service.Namespace, Name: service.Name},
		Problems: []report.Problem{{Severity: report.Warning, Reason: report.PortNotPublished, Field: "spec.ports",
			Message: why}},
	}
}

// checkNodes warns about ports that clients cannot reach through the nodes. If the pods use hostPort for some ports, as
// in a DaemonSet, clients can reach all other ports only through a Service.
func (p *planning) checkNodes() {
	if p.Pod == nil || p.Pod.Spec.HostNetwork {
		return
	}
	var fromNodes []corev1.ContainerPort
	for i := range p.Pod.Spec.Containers {
		for _, port := range p.Pod.Spec.Containers[i].Ports {
			if port.HostPort != 0 {
				fromNodes = append(fromNodes, port)
			}
		}
	}
	if len(fromNodes) == 0 {
		return
	}
	unreachable := slices.DeleteFunc(slices.Clone(p.Routes), func(route *ir.StreamRoute) bool {
		return p.isPublic() && p.isServed(route) ||
			slices.ContainsFunc(fromNodes, func(port corev1.ContainerPort) bool {
				return port.ContainerPort == int32(route.Port) &&
					cmp.Or(port.Protocol, corev1.ProtocolTCP) == protocolOf(route)
			})
	})
	p.warn(report.PortUnreachable, unreachable,
		"the controller's pods use hostPort only for other ports, so clients outside the cluster cannot connect to "+
			"%s: each port needs an entry in the ports of the container, with containerPort and hostPort, or in a "+
			"Service of type LoadBalancer or NodePort")
}

// isPublic reports whether the type of the Service allows connections from outside the cluster.
func (p *planning) isPublic() bool {
	return p.Service != nil &&
		(p.Service.Spec.Type == corev1.ServiceTypeLoadBalancer || p.Service.Spec.Type == corev1.ServiceTypeNodePort)
}
