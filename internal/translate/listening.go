package translate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/backends"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/snippets"
	"github.com/k8singress/k8singress/internal/translate/streams"
)

// listening translates the servers of http-snippet that listen on ports of their own. Each port is a listener group.
type listening struct {
	origin   ir.Ref
	reserved streams.ReservedPorts
	groups   map[uint16]*ir.ListenerGroup
	problems []report.Problem
}

// readListening returns the listener groups for the servers of http-snippet, sorted by name, and the problems to report
// on the ConfigMap, which is origin.
func readListening(
	of []annotations.ListeningServer, origin ir.Ref, reserved streams.ReservedPorts,
) ([]*ir.ListenerGroup, []report.Problem) {
	l := &listening{origin: origin, reserved: reserved, groups: map[uint16]*ir.ListenerGroup{}}
	for i := range of {
		for _, listen := range of[i].Listens {
			l.add(&of[i], listen)
		}
	}
	for _, g := range l.groups {
		slices.SortFunc(g.VirtualHosts, func(a, b *ir.VirtualHost) int { return cmp.Compare(a.Host, b.Host) })
	}
	return slices.SortedFunc(maps.Values(l.groups),
		func(a, b *ir.ListenerGroup) int { return cmp.Compare(a.Name, b.Name) }), l.problems
}

// add adds a server to the group of a port.
func (l *listening) add(s *annotations.ListeningServer, listen snippets.Listen) {
	protocol := ir.ListenerHTTP
	if listen.TLS {
		protocol = ir.ListenerHTTPS
	}
	g, reserved := l.groups[listen.Port], l.reserved.Owner(ir.TCP, listen.Port)
	switch {
	case reserved != "":
		l.problem(report.Error, report.PortConflict, "line %d: port %d is the %s port of the controller itself: "+
			"choose another port", s.Line, listen.Port, reserved)
		return
	case g == nil:
		name := fmt.Sprint(listen.Port)
		g = &ir.ListenerGroup{Name: "http-snippet/" + name, Origin: l.origin, Listeners: []ir.Listener{
			{Name: name, Port: listen.Port, Protocol: protocol},
		}}
		l.groups[listen.Port] = g
		l.problem(report.Info, report.PortNotPublished, "line %d: port %d is open. If clients outside of the pod need "+
			"it, add it to the Service, and to controller.networkPolicy.ports of the chart", s.Line, listen.Port)
	case g.Listeners[0].Protocol != protocol:
		l.problem(report.Error, report.PortConflict, "line %d: another server listens on port %d, one with ssl and "+
			"one without: choose another port", s.Line, listen.Port)
		return
	}
	routes := l.routes(s)
	for _, name := range s.Names {
		addHost(g, name, routes)
	}
	// The first server of a port responds to all other names, unless another one is marked.
	if i := slices.IndexFunc(g.VirtualHosts, func(h *ir.VirtualHost) bool { return h.Host == "" }); i < 0 {
		addHost(g, "", routes)
	} else if listen.Default {
		g.VirtualHosts[i] = &ir.VirtualHost{Routes: routes}
	}
}

// addHost adds a virtual host. As in nginx, the first server with a name has the name.
func addHost(g *ir.ListenerGroup, name string, routes []*ir.Route) {
	if !slices.ContainsFunc(g.VirtualHosts, func(h *ir.VirtualHost) bool { return h.Host == name }) {
		g.VirtualHosts = append(g.VirtualHosts, &ir.VirtualHost{Host: name, Routes: routes})
	}
}

// routes returns the routes for the locations of a server. No request reaches their backend, which does not exist.
func (l *listening) routes(s *annotations.ListeningServer) (all []*ir.Route) {
	unused := &ir.Backend{ID: backends.Prefix(l.origin.Namespace, ""), Namespace: l.origin.Namespace, Protocol: ir.TCP,
		Missing: true}
	for i := range s.Locations {
		of := &s.Locations[i]
		path := (&hosts.Path{Filters: of.Filters, Early: of.Early}).With(s.Filters)
		all = append(all, &ir.Route{Match: of.Match, Filters: path.Filters, Backends: ir.To(unused), Origin: l.origin})
	}
	return all
}

func (l *listening) problem(severity report.Severity, reason report.Reason, message string, args ...any) {
	l.problems = append(l.problems, report.Problem{
		Severity: severity, Reason: reason, Field: "data[" + annotations.HTTPSnippet.Name + "]",
		Message: fmt.Sprintf(message, args...),
	})
}

// readListening sets the listener groups again, which depend on the ConfigMap only.
func (t *Translator) readListening(c *change) {
	old := t.listening
	t.listening = t.defaults.listening
	for i, g := range t.listening {
		if before := slices.IndexFunc(old, func(o *ir.ListenerGroup) bool { return o.Name == g.Name }); before >= 0 {
			t.listening[i] = keep(old[before], g)
		}
	}
	t.countGroups(c, old, -1)
	t.countGroups(c, t.listening, 1)
}

// listeningPorts returns the ports that http-snippet opens. They are reserved, so that Services and ConfigMaps for TCP
// ports cannot open them as well.
func (t *Translator) listeningPorts() (all streams.ReservedPorts) {
	for _, g := range t.listening {
		for _, l := range g.Listeners {
			all = append(all, streams.ReservedPort{Protocol: ir.TCP, Port: l.Port, Owner: annotations.HTTPSnippet.Name})
		}
	}
	return all
}

// countGroups adds n to the number of routes that use each backend of the groups.
func (t *Translator) countGroups(c *change, all []*ir.ListenerGroup, n int) {
	for _, g := range all {
		for _, h := range g.VirtualHosts {
			t.count(c, h, n)
		}
	}
}
