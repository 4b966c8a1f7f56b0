// Package endpoints determines the endpoints of backends from EndpointSlices, and holds the current endpoints of all
// backends.
package endpoints

import (
	"cmp"
	"iter"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// Resolve returns the endpoints of a backend, given the EndpointSlices of its Service. They are sorted by address and
// without duplicates, so that the result does not depend on the order of the slices.
//
// Resolve returns the ready endpoints. With publishNotReadyAddresses, all endpoints of the Service count as ready. If
// there are no ready endpoints, it returns the endpoints that are terminating but still serving. Endpoints with a host
// name instead of an IP address are ignored. If the backend uses the ClusterIP of the Service, this is the only
// endpoint. The result is empty for an ExternalName Service, because package resolver looks up the name.
//
// zone is the zone of this process for topology-aware routing; if it is empty, topology hints are ignored. As in
// kube-proxy, only the ready endpoints with a hint for this zone are returned, provided that all ready endpoints have
// hints and at least one hint is for this zone.
func Resolve(endpointSlices iter.Seq[*discoveryv1.EndpointSlice], b *ir.Backend, zone string) []ir.Endpoint {
	if b.Missing || b.ExternalName != "" {
		return nil
	}
	if isVirtual(b) {
		return []ir.Endpoint{{Address: b.VirtualAddress}}
	}
	hints := hints{zone: zone, complete: zone != ""}
	var ready, near, terminating []ir.Endpoint
	for slice := range endpointSlices {
		port, ok := portOf(slice, b)
		if !ok {
			continue
		}
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			switch {
			case b.NotReadyToo || isReady(&endpoint.Conditions):
				ready = appendAddresses(ready, endpoint, port)
				if hints.match(endpoint) {
					near = appendAddresses(near, endpoint, port)
				}
			case isTerminating(&endpoint.Conditions):
				terminating = appendAddresses(terminating, endpoint, port)
			}
		}
	}
	if hints.complete && len(near) > 0 {
		ready = near
	}
	if len(ready) == 0 {
		ready = terminating
		for i := range ready {
			ready[i].Terminating = true
		}
	}
	slices.SortFunc(ready, func(a, b ir.Endpoint) int { return cmp.Compare(a.Address, b.Address) })
	return slices.Compact(ready)
}

// hints finds the endpoints that have a topology hint for a zone. complete is true as long as all endpoints so far have
// hints. If an endpoint has no hints, hints are ignored, because the endpoints with a hint for the zone may not be able
// to take the load of the zone.
type hints struct {
	zone     string
	complete bool
}

func (h *hints) match(endpoint *discoveryv1.Endpoint) bool {
	if endpoint.Hints == nil || len(endpoint.Hints.ForZones) == 0 {
		h.complete = false
		return false
	}
	return slices.ContainsFunc(endpoint.Hints.ForZones, func(z discoveryv1.ForZone) bool { return z.Name == h.zone })
}

// isVirtual reports whether the backend uses the ClusterIP of the Service as its only endpoint. A headless Service has
// no ClusterIP.
func isVirtual(b *ir.Backend) bool {
	return b.LoadBalancing.UseVirtualAddress && b.VirtualAddress != ""
}

// PortGone reports whether the Service of a backend has endpoints, but none of its EndpointSlices contains the
// backend's port.
func PortGone(endpointSlices iter.Seq[*discoveryv1.EndpointSlice], b *ir.Backend) bool {
	some := false
	if b.Missing || b.ExternalName != "" || isVirtual(b) {
		return false
	}
	for slice := range endpointSlices {
		if _, ok := portOf(slice, b); ok {
			return false
		}
		some = some || len(slice.Endpoints) > 0
	}
	return some
}

// portOf returns the target port of a backend in an EndpointSlice. It returns false if the slice does not contain the
// port. Pods with different target ports are in different slices.
func portOf(slice *discoveryv1.EndpointSlice, b *ir.Backend) (string, bool) {
	if slice.AddressType == discoveryv1.AddressTypeFQDN {
		return "", false
	}
	for i := range slice.Ports {
		p := &slice.Ports[i]
		if value(p.Name, "") != b.PortName || protocolOf(p) != b.Protocol {
			continue
		}
		if number := value(p.Port, 0); number > 0 && number < 1<<16 {
			return strconv.Itoa(int(number)), true
		}
	}
	return "", false
}

func protocolOf(p *discoveryv1.EndpointPort) ir.Protocol {
	return ir.Protocol(strings.ToLower(string(value(p.Protocol, corev1.ProtocolTCP))))
}

// isReady reports whether an endpoint is ready. As the Kubernetes API requires, an unknown condition counts as ready.
func isReady(c *discoveryv1.EndpointConditions) bool { return value(c.Ready, true) }

func isTerminating(c *discoveryv1.EndpointConditions) bool {
	return value(c.Terminating, false) && value(c.Serving, isReady(c))
}

func appendAddresses(list []ir.Endpoint, endpoint *discoveryv1.Endpoint, port string) []ir.Endpoint {
	for _, text := range endpoint.Addresses {
		if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
			list = append(list, ir.Endpoint{Address: net.JoinHostPort(ip.String(), port)})
		}
	}
	return list
}

func value[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}
