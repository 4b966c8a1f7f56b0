package services

import (
	"context"
	"net"
	"strconv"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ready returns the ready endpoints of a Service's port as host:port.
func ready(slices []*discoveryv1.EndpointSlice, portName string) (endpoints []string) {
	for _, slice := range slices {
		for _, port := range slice.Ports {
			if port.Port == nil || (port.Name != nil && *port.Name != portName) {
				continue
			}
			for i := range slice.Endpoints {
				for _, ip := range readyAddresses(&slice.Endpoints[i]) {
					endpoints = append(endpoints, net.JoinHostPort(ip, strconv.Itoa(int(*port.Port))))
				}
			}
		}
	}
	return endpoints
}

func readyAddresses(endpoint *discoveryv1.Endpoint) []string {
	if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
		return nil
	}
	return endpoint.Addresses
}

// assign gives each Service of type LoadBalancer an address, and frees the addresses of deleted Services.
func (p *Proxy) assign(ctx context.Context, all []*v1.Service) bool {
	ok, alive := true, map[string]bool{}
	for _, service := range all {
		if service.Spec.Type != v1.ServiceTypeLoadBalancer {
			continue
		}
		key := string(service.UID)
		alive[key] = true
		if p.given[key] == "" {
			p.given[key] = p.choose(service)
		}
		if len(service.Status.LoadBalancer.Ingress) == 0 && !p.publish(ctx, service, p.given[key]) {
			ok = false
		}
	}
	for key, ip := range p.given {
		if !alive[key] {
			p.addresses.Give(ip)
			delete(p.given, key)
		}
	}
	return ok
}

// choose returns the address that a Service requests, even if it is not in the pool, or any free address.
func (p *Proxy) choose(service *v1.Service) string {
	if ip := service.Spec.LoadBalancerIP; ip != "" {
		p.addresses.Claim(ip)
		return ip
	}
	ip, _ := p.addresses.Take()
	return ip
}

func (p *Proxy) publish(ctx context.Context, service *v1.Service, ip string) bool {
	if ip == "" {
		return false
	}
	update := service.DeepCopy()
	update.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: ip}}
	_, err := p.client.CoreV1().Services(service.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	return err == nil
}
