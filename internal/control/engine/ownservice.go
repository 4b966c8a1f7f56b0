package engine

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// guardService forbids connections to the controller's own Service: to its cluster IPs, its load balancer addresses,
// and its pods, which are the replicas of this controller. Requests to these addresses would loop, and would have the
// address of a pod as the client address, which many networks trust.
func (l *loop) guardService(s *snapshot.Snapshot) {
	service := l.settings.PublishService
	concerned := func(ref ir.Ref) bool {
		return ref.Namespace == service.Namespace && ref.Name == service.Name &&
			(ref.Kind == kinds.Service || ref.Kind == kinds.EndpointSlice)
	}
	if slices.ContainsFunc(s.Changed, concerned) {
		l.live.ReachService(listeningOf(s, service))
	}
}

// listeningOf returns the addresses and ports on which clients reach a Service: the addresses of the Service itself and
// of its endpoints.
func listeningOf(s *snapshot.Snapshot, name ir.Name) []reach.Listening {
	var all []reach.Listening
	if service, ok := snapshot.Of[*corev1.Service](s).Get(name.Namespace, name.Name); ok {
		for i := range service.Spec.Ports {
			p := &service.Spec.Ports[i]
			all = appendListening(all, virtualAddresses(service), p.Protocol, p.Port)
		}
	}
	for slice := range s.EndpointSlices(name.Namespace, name.Name) {
		var pods []string
		for i := range slice.Endpoints {
			pods = append(pods, slice.Endpoints[i].Addresses...)
		}
		for i := range slice.Ports {
			if p := &slice.Ports[i]; p.Port != nil {
				protocol := corev1.ProtocolTCP
				if p.Protocol != nil {
					protocol = *p.Protocol
				}
				all = appendListening(all, pods, protocol, *p.Port)
			}
		}
	}
	return all
}

// virtualAddresses returns the cluster IPs, external IPs and load balancer IPs of a Service.
func virtualAddresses(service *corev1.Service) []string {
	all := slices.Concat(service.Spec.ClusterIPs, []string{service.Spec.ClusterIP}, service.Spec.ExternalIPs)
	for i := range service.Status.LoadBalancer.Ingress {
		all = append(all, service.Status.LoadBalancer.Ingress[i].IP)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// appendListening appends one element to all for each of the hosts, with the given protocol and port. It skips hosts
// that are not IP addresses, such as the value "None" of a headless Service.
func appendListening(all []reach.Listening, hosts []string, protocol corev1.Protocol, port int32) []reach.Listening {
	for _, text := range hosts {
		if host, err := netip.ParseAddr(text); err == nil && port > 0 && port < 1<<16 {
			transport := reach.Transport(strings.ToLower(string(protocol)))
			all = append(all, reach.Listening{Transport: transport, Host: host, First: uint16(port),
				Last: uint16(port)})
		}
	}
	return all
}
