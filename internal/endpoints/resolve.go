// Package endpoints turns EndpointSlices into the addresses of a backend, and holds the current addresses of every
// backend where requests and connections pick one.
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

	"github.com/k8singress/k8singress/internal/ir"
)

// Resolve returns the endpoints that serve a backend, given the slices of its Service. They are sorted and without
// duplicates, so that equal slices give an equal list.
//
// Ready endpoints are taken; where the Service publishes those that are not ready, all count as such. When there is none,
// those that still serve while they terminate are: a last answer is better than none. Only IP addresses count; whoever
// names an endpoint by a host name asks for DNS, which is not asked. A backend that uses its virtual address has no other
// endpoint, and one that stands for a name has none here: those are looked up by who serves it.
//
// Of ready endpoints only those for zone are taken, where all of them have hints and some are for it: kube-proxy's rule.
// An empty zone takes them all.
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

// hints tells the endpoints of one zone. They count only if each endpoint has some: without, there is no saying whether
// those of the zone can take all of its load.
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

// isVirtual says whether the Service itself is the only endpoint. A headless one has no address for that.
func isVirtual(b *ir.Backend) bool {
	return b.LoadBalancing.UseVirtualAddress && b.VirtualAddress != ""
}

// PortGone says whether a Service has endpoints, and none of its slices has the port of a backend.
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

// portOf returns the target port of a backend in one slice. Pods of one Service may differ in it; then they are in
// different slices.
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

// isReady takes an unknown state for ready, as the API asks its consumers to.
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
