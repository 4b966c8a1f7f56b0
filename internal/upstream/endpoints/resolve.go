// Package endpoints translates EndpointSlices into the addresses of a backend, and holds the current addresses of all
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

// Resolve returns the endpoints of a backend from the slices of its Service. They are sorted and without duplicates, so
// that equal slices give an equal list.
//
// It returns the ready endpoints. If the Service publishes endpoints that are not ready, all of them are treated as
// ready. If there are no ready endpoints, it returns those that are terminating but still serving. Only IP addresses
// are used: endpoints with a host name would need DNS and are ignored. A backend that uses its virtual address has only
// this endpoint. A backend for an external name has no endpoints here, because package resolver looks up the name.
//
// As in kube-proxy, only the ready endpoints with a hint for zone are returned, if all of them have hints and at least
// one is for zone. If zone is empty, hints are ignored.
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

// hints matches the endpoints of one zone. Hints are used only if each endpoint has some. Otherwise it is unknown
// whether the endpoints of the zone can take its load.
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

// isVirtual reports whether the virtual address of the Service is the only endpoint. A headless Service has no virtual
// address.
func isVirtual(b *ir.Backend) bool {
	return b.LoadBalancing.UseVirtualAddress && b.VirtualAddress != ""
}

// PortGone reports whether a Service has endpoints, but none of its slices has the port of the backend.
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

// portOf returns the target port of a backend in one slice. If pods of a Service use different target ports, they are
// in different slices.
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

// isReady treats an unknown state as ready, as the API requires.
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
