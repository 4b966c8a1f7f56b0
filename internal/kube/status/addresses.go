// Package status writes results to Kubernetes: the addresses of the controller to the status of Ingresses, and problems
// as Events. Of all replicas, only the leader writes.
package status

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// Addresses returns the addresses at which clients reach the controller: the given addresses, or else the addresses of
// the Service, sorted and without duplicates. If the result is empty, the addresses are unknown and no status is
// written.
func Addresses(s *snapshot.Snapshot, given []string, service ir.Name) []networkingv1.IngressLoadBalancerIngress {
	if len(given) > 0 {
		return ordered(entries(given))
	}
	if object, ok := snapshot.Of[*corev1.Service](s).Get(service.Namespace, service.Name); ok {
		return ordered(ofService(object))
	}
	return nil
}

// ofService returns the addresses of a Service, in the same way as ingress-nginx's statusAddressFromService.
func ofService(service *corev1.Service) []networkingv1.IngressLoadBalancerIngress {
	switch service.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return entries([]string{service.Spec.ExternalName})
	case corev1.ServiceTypeLoadBalancer:
		var all []networkingv1.IngressLoadBalancerIngress
		for _, in := range service.Status.LoadBalancer.Ingress {
			all = append(all, networkingv1.IngressLoadBalancerIngress{IP: in.IP, Hostname: in.Hostname})
		}
		return append(all, entries(service.Spec.ExternalIPs)...)
	case corev1.ServiceTypeNodePort:
		if len(service.Spec.ExternalIPs) > 0 {
			return entries(service.Spec.ExternalIPs)
		}
	case corev1.ServiceTypeClusterIP:
	}
	if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	return entries([]string{service.Spec.ClusterIP})
}

func entries(addresses []string) []networkingv1.IngressLoadBalancerIngress {
	all := make([]networkingv1.IngressLoadBalancerIngress, 0, len(addresses))
	for _, address := range addresses {
		if _, err := netip.ParseAddr(address); err == nil {
			all = append(all, networkingv1.IngressLoadBalancerIngress{IP: address})
		} else {
			all = append(all, networkingv1.IngressLoadBalancerIngress{Hostname: address})
		}
	}
	return all
}

func ordered(all []networkingv1.IngressLoadBalancerIngress) []networkingv1.IngressLoadBalancerIngress {
	all = slices.DeleteFunc(all, func(a networkingv1.IngressLoadBalancerIngress) bool {
		return a.IP == "" &&
			a.Hostname == ""
	})
	slices.SortFunc(all, func(a, b networkingv1.IngressLoadBalancerIngress) int {
		return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Hostname, b.Hostname))
	})
	return slices.CompactFunc(all, same)
}

func same(a, b networkingv1.IngressLoadBalancerIngress) bool {
	return a.IP == b.IP && a.Hostname == b.Hostname
}
