// Package render translates the model into the live configuration: virtual hosts into Caddy HTTP routes, and TCP and
// UDP ports into caddy-l4 servers. It does no I/O. It renders only the parts of the model that have changed.
package render

import (
	"fmt"
	"reflect"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// Endpoints returns the addresses of a backend's endpoints in the form host:port. The result is empty for a backend
// with an external name.
type Endpoints func(*ir.Backend) []string

// Ports returns the caddy-l4 server for a TCP or UDP port, which is defined by a stream route.
type Ports func(*ir.StreamRoute) *document.Port

// Renderer translates the model into the live configuration. Its fields provide data that is not part of the model.
type Renderer struct {
	// Endpoints returns the endpoints of a backend. If it is nil, backends get no endpoints.
	Endpoints Endpoints
	Ports     Ports
}

// Live returns the live configuration for all hosts, backends and ports of the model.
func (r *Renderer) Live(config *ir.Config) *document.Live {
	d := r.Delta(&ir.Config{}, config)
	return &document.Live{
		Hosts: d.Hosts, Backends: d.Backends, Ports: d.Ports, Certificates: d.Certificates,
		ListenerGroups: d.ListenerGroups, Global: d.Global,
	}
}

// Delta renders the differences between two configurations. Hosts, backends and ports with equal pointers in both
// configurations are not rendered again. Endpoints of backends that are in both configurations are not rendered,
// because they are updated separately.
func (r *Renderer) Delta(from, to *ir.Config) *document.Delta {
	return &document.Delta{
		Hosts:          changes(from.VirtualHosts, to.VirtualHosts, hostName, chains{}.host),
		Backends:       changes(from.Backends, to.Backends, backendID, r.backend),
		Ports:          changes(from.StreamRoutes, to.StreamRoutes, portKey, r.port),
		Certificates:   changes(certificates(from), certificates(to), certificateHost, certificate),
		ListenerGroups: changes(from.MoreGroups, to.MoreGroups, groupName, listenerGroup),
		Global:         global(from.Global, to.Global),
	}
}

// global returns the new global settings, or nil if they have not changed. Nil arguments are treated as empty settings.
func global(from, to *ir.Global) *ir.Global {
	if from == nil {
		from = &ir.Global{}
	}
	if to == nil {
		to = &ir.Global{}
	}
	if reflect.DeepEqual(from, to) {
		return nil
	}
	return to
}

func groupName(g *ir.ListenerGroup) string     { return g.Name }
func hostName(h *ir.VirtualHost) string        { return h.Host }
func backendID(b *ir.Backend) string           { return b.ID }
func certificateHost(c *ir.Certificate) string { return c.Host }

// portKey returns a sort key for stream routes, which are sorted by protocol and then by port number.
func portKey(s *ir.StreamRoute) string { return fmt.Sprintf("%s/%05d", s.Protocol, s.Port) }

// PortName returns the name of a stream route in the live configuration, such as "tcp/5432".
func PortName(s *ir.StreamRoute) string { return fmt.Sprintf("%s/%d", s.Protocol, s.Port) }

func certificates(c *ir.Config) []*ir.Certificate {
	if c.DefaultCertificate == nil {
		return c.Certificates
	}
	return append([]*ir.Certificate{c.DefaultCertificate}, c.Certificates...)
}

// part is an element of the live configuration with its name, such as a host or a backend.
type part[D any] struct {
	name  string
	value *D
}

// changes compares the old and the new list of hosts, backends or ports (from and to), and renders the differences.
// Both lists must be sorted by key. A pointer that is in both lists is skipped. The result maps the name of each new or
// changed element to its rendered form, and the name of each removed element to nil.
func changes[T, D any](from, to []*T, key func(*T) string, render func(*T) part[D]) map[string]*D {
	result := map[string]*D{}
	for len(from) > 0 || len(to) > 0 {
		switch {
		case len(from) > 0 && len(to) > 0 && from[0] == to[0]:
			from, to = from[1:], to[1:]
		case len(to) == 0 || len(from) > 0 && key(from[0]) < key(to[0]):
			result[render(from[0]).name] = nil
			from = from[1:]
		default:
			if len(from) > 0 && key(from[0]) == key(to[0]) {
				from = from[1:]
			}
			p := render(to[0])
			result[p.name] = p.value
			to = to[1:]
		}
	}
	return result
}

func (r *Renderer) port(s *ir.StreamRoute) part[document.Port] {
	return part[document.Port]{PortName(s), r.Ports(s)}
}

func (r *Renderer) backend(b *ir.Backend) part[document.Backend] {
	addresses := []string{}
	if r.Endpoints != nil {
		addresses = append(addresses, r.Endpoints(b)...)
	}
	return part[document.Backend]{b.ID, &document.Backend{
		Endpoints: addresses, ExternalName: b.ExternalName, LoadBalancing: loadBalancing(b),
	}}
}

// loadBalancing returns the load balancing settings of a backend, or nil if they are the default. It omits
// UseVirtualAddress, because the list of endpoints already takes it into account.
func loadBalancing(b *ir.Backend) *ir.LoadBalancing {
	lb := b.LoadBalancing
	if lb.UseVirtualAddress = false; reflect.DeepEqual(lb, ir.LoadBalancing{}) {
		return nil
	}
	return &lb
}

func listenerGroup(g *ir.ListenerGroup) part[document.ListenerGroup] {
	return part[document.ListenerGroup]{g.Name, &document.ListenerGroup{
		Listeners: g.Listeners, Hosts: changes(nil, g.VirtualHosts, hostName, chains{}.host), Origin: g.Origin,
	}}
}

func certificate(c *ir.Certificate) part[ir.Certificate] { return part[ir.Certificate]{c.Host, c} }
