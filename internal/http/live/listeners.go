package live

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/shrinking"
)

// ServerPorts is used in place of a port number. It stands for all ports of Caddy's HTTP servers, which serve the
// virtual hosts of Ingresses.
const ServerPorts uint16 = 0

// group holds the virtual hosts of one listener group. All listeners in the group serve the same virtual hosts.
type group struct {
	index atomic.Pointer[index]
	// refused maps host names to the routes of the host that are not served as configured.
	refused shrinking.Map[string, []refused]
}

func (g *group) init() {
	g.index.Store(&index{})
	g.refused.Clear()
}

// UpdateGroup adds, replaces and removes hosts of a listener group. A nil value removes the host. The first update
// creates the group.
func (t *Table) UpdateGroup(name string, changes map[string]*document.Host) {
	g := t.groups[name]
	if g == nil {
		g = new(group)
		g.init()
		t.groups[name] = g
	}
	t.update(g, changes)
}

// RemoveGroup removes a listener group and its hosts. The group must not have any listeners.
func (t *Table) RemoveGroup(name string) {
	g := t.groups[name]
	if g == nil {
		return
	}
	gone := map[string]*document.Host{}
	g.index.Load().all(func(h *host) { gone[h.name] = nil })
	t.update(g, gone)
	delete(t.groups, name)
}

// Listener serves the virtual hosts of a listener group on a port. The port must not belong to one of Caddy's HTTP
// servers. Several listeners with different host names may share a port.
type Listener struct {
	// Name is unique among all listeners.
	Name string
	Port uint16
	// Hostname limits the listener to certain host names. It may begin with a wildcard. If it is empty, the listener
	// serves all host names.
	Hostname string
	// Group is the name of the listener group whose virtual hosts the listener serves.
	Group string
}

// listener is the compiled form of Listener.
type listener struct {
	name, hostname string
	group          *group
}

// listeners maps port numbers to listeners. The listeners of a port are sorted by their host names, the most specific
// name first. The map is immutable.
type listeners map[uint16][]*listener

// SetListeners replaces the listeners of all ports except the ports of Caddy's HTTP servers. If several listeners share
// a port, a request or TLS handshake is served by the listener with the most specific matching host name.
func (t *Table) SetListeners(all []Listener) {
	next := listeners{}
	for _, l := range all {
		if g := t.groups[l.Group]; g != nil {
			next[l.Port] = append(next[l.Port], &listener{l.Name, l.Hostname, g})
		}
	}
	for _, of := range next {
		slices.SortStableFunc(of, func(a, b *listener) int { return compareSpecificity(a.hostname, b.hostname) })
	}
	t.listeners.Store(&next)
}

// compareSpecificity is a comparison function that sorts more specific host names to the front: names without a
// wildcard come before names with a wildcard, and longer names before shorter names. The empty name, which covers all
// names, comes last.
func compareSpecificity(a, b string) int {
	wild := func(name string) int { return strings.LastIndexByte(name, '*') + 1 }
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a))
	}
	return cmp.Or(cmp.Compare(min(wild(a), 1), min(wild(b), 1)), cmp.Compare(len(b)-wild(b), len(a)-wild(a)),
		cmp.Compare(wild(a), wild(b)))
}

// find returns the listener of a port whose host name covers name, or nil. name must be in lower case.
func (l *listeners) find(port uint16, name string) *listener {
	for _, of := range (*l)[port] {
		if covers(of.hostname, name) {
			return of
		}
	}
	return nil
}

// covers reports whether hostname, the host name of a listener, covers name. "*.example.com" covers names with one more
// label, "**.example.com" names with any number of additional labels, and an empty host name covers all names.
func covers(hostname, name string) bool {
	if suffix, ok := strings.CutPrefix(hostname, "**"); ok {
		return len(name) > len(suffix) && strings.HasSuffix(name, suffix)
	}
	if suffix, ok := strings.CutPrefix(hostname, "*"); ok {
		label, found := strings.CutSuffix(name, suffix)
		return found && label != "" && !strings.Contains(label, ".")
	}
	return hostname == "" || hostname == name
}

// ListenerFor returns the name of the listener that serves a server name on a port. It returns an empty string for
// ServerPorts, and if no listener covers the server name. server is the server name as the client sent it, or empty.
func (t *Table) ListenerFor(port uint16, server string) string {
	if l := t.listeners.Load().find(port, message.Hostname(server)); l != nil {
		return l.name
	}
	return ""
}

// indexFor returns the index of the virtual hosts that may serve a request with the given host name on a port. name
// must be in lower case.
func (t *Table) indexFor(port uint16, name string) *index {
	if port == ServerPorts {
		return t.index.Load()
	}
	if l := t.listeners.Load().find(port, name); l != nil {
		return l.group.index.Load()
	}
	return t.global.uncovered.Load()
}

// Defines reports whether a host name is the exact name of a virtual host, or of an alias, that requests on a port may
// reach. name must be in lower case. Wildcards and regular expressions that match the name do not count.
func (t *Table) Defines(port uint16, name string) bool {
	h := t.indexFor(port, name).lookup(name)
	return h != nil && name != "" && h.name == name
}

// misdirected reports whether a request arrived on a TLS connection that was opened for a different listener of the
// port: the listener of the handshake's server name is not the listener of the requested host. Such listeners may have
// different certificates and policies.
func (t *Table) misdirected(conn *message.Conn, name string) bool {
	if conn.Listener == ServerPorts || conn.TLS == nil {
		return false
	}
	all := t.listeners.Load()
	return all.find(conn.Listener, message.Hostname(conn.TLS.ServerName)) != all.find(conn.Listener, name)
}

// allGroups calls yield with every listener group, including the group of Ingresses, until yield returns false. Only
// the goroutine that changes the routing table may call it.
func (t *Table) allGroups(yield func(*group) bool) {
	if !yield(&t.group) {
		return
	}
	for g := range maps.Values(t.groups) {
		if !yield(g) {
			return
		}
	}
}

// allHosts calls yield with every host of every listener group. Only the goroutine that changes the routing table may
// call it.
func (t *Table) allHosts(yield func(*host)) {
	for g := range t.allGroups {
		g.index.Load().all(yield)
	}
}

// hostsWithClientAuth calls yield with the hosts of each listener group that contains a host with client certificates.
// yield must check each host, because other hosts of the same group are included. Only the goroutine that changes the
// routing table may call hostsWithClientAuth.
func (t *Table) hostsWithClientAuth(yield func(*host)) {
	for g := range t.allGroups {
		if x := g.index.Load(); x.withClientAuth > 0 {
			x.all(yield)
		}
	}
}
