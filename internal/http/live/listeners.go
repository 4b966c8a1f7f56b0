package live

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/document"
)

// ServerPorts represents all ports of the servers. On these ports the virtual hosts of all Ingresses are served.
const ServerPorts uint16 = 0

// group holds the virtual hosts of one listener group.
type group struct {
	index atomic.Pointer[index]
	// refused holds, by host, the routes that are not served as their document defines them.
	refused map[string][]refused
}

func (g *group) init() {
	g.index.Store(&index{})
	g.refused = map[string][]refused{}
}

// UpdateGroup changes hosts of a listener group, as Update does for the hosts of Ingresses. The first update creates
// the group.
func (t *Table) UpdateGroup(name string, changes map[string]*document.Host) {
	g := t.groups[name]
	if g == nil {
		g = new(group)
		g.init()
		t.groups[name] = g
	}
	t.update(g, changes)
}

// RemoveGroup removes a listener group and its hosts. No listener may belong to it any more.
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

// Listener is a port in addition to the server ports, or the part of such a port that serves certain host names. It
// serves the hosts of its group.
type Listener struct {
	// Name is unique.
	Name string
	Port uint16
	// Hostname is as in the document.
	Hostname string
	// Group is the name of a listener group.
	Group string
}

// listener is one listener of a port.
type listener struct {
	name, hostname string
	group          *group
}

// listeners holds all listeners by port. The listeners of a port are in the order in which they are tried. The value is
// immutable.
type listeners map[uint16][]*listener

// SetListeners replaces the listeners of all ports except the server ports. If a port has several listeners, a request
// or a handshake uses the listener with the most specific host name that covers its name.
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

// compareSpecificity sorts host names by how specific they are: names without a wildcard first, then longer names, and
// last the empty name, which covers every host.
func compareSpecificity(a, b string) int {
	wild := func(name string) int { return strings.LastIndexByte(name, '*') + 1 }
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a))
	}
	return cmp.Or(cmp.Compare(min(wild(a), 1), min(wild(b), 1)), cmp.Compare(len(b)-wild(b), len(a)-wild(a)),
		cmp.Compare(wild(a), wild(b)))
}

// find returns the listener of a port for a name in lower case, or nil.
func (l *listeners) find(port uint16, name string) *listener {
	for _, of := range (*l)[port] {
		if covers(of.hostname, name) {
			return of
		}
	}
	return nil
}

// covers reports whether a host name of a document covers a name. "*.example.com" covers names with one more label,
// "**.example.com" names with any number of additional labels, and an empty host name covers all names.
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

// ListenerFor returns the name of the listener of a port for a server name. server is as the client sent it, or empty.
// The result is empty for ServerPorts and if no listener covers the name.
func (t *Table) ListenerFor(port uint16, server string) string {
	if l := t.listeners.Load().find(port, message.Hostname(server)); l != nil {
		return l.name
	}
	return ""
}

// emptyIndex is the index for names that no listener of their port covers.
var emptyIndex = &index{}

// indexFor returns the virtual hosts for a port and a name in lower case.
func (t *Table) indexFor(port uint16, name string) *index {
	if port == ServerPorts {
		return t.index.Load()
	}
	if l := t.listeners.Load().find(port, name); l != nil {
		return l.group.index.Load()
	}
	return emptyIndex
}

// misdirected reports whether the connection was made for a different listener of its port than the request. That
// listener may have other certificates and policies.
func (t *Table) misdirected(conn *message.Conn, name string) bool {
	if conn.Listener == ServerPorts || conn.TLS == nil {
		return false
	}
	all := t.listeners.Load()
	return all.find(conn.Listener, message.Hostname(conn.TLS.ServerName)) != all.find(conn.Listener, name)
}

// allGroups yields every group. Only the goroutine that changes the table may call it, and allHosts and
// hostsWithClientAuth.
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

// allHosts calls yield with every host of every group.
func (t *Table) allHosts(yield func(*host)) {
	for g := range t.allGroups {
		g.index.Load().all(yield)
	}
}

// hostsWithClientAuth calls yield with every host that has a policy for client certificates. It may call it with other
// hosts too.
func (t *Table) hostsWithClientAuth(yield func(*host)) {
	for g := range t.allGroups {
		if x := g.index.Load(); x.withClientAuth > 0 {
			x.all(yield)
		}
	}
}
