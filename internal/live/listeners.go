package live

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/message"
)

// ServerPorts stands for all ports of the servers, where requests see the virtual hosts of all Ingresses.
const ServerPorts uint16 = 0

// group has the virtual hosts of one listener group.
type group struct {
	index atomic.Pointer[index]
	// refused are the routes, by host, that are not served as their document says.
	refused map[string][]refused
}

func (g *group) init() {
	g.index.Store(&index{})
	g.refused = map[string][]refused{}
}

// UpdateGroup changes hosts of a listener group, as Update does for those of Ingresses. The group begins to be with its first change.
func (t *Table) UpdateGroup(name string, changes map[string]*document.Host) {
	g := t.groups[name]
	if g == nil {
		g = new(group)
		g.init()
		t.groups[name] = g
	}
	t.update(g, changes)
}

// RemoveGroup ends a listener group, to which no listener belongs any more.
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

// Listener is a port beside those of the servers, or the part of one that is for some names, and whose hosts are served there.
type Listener struct {
	// Name is unique.
	Name string
	Port uint16
	// Hostname is as in the document.
	Hostname string
	// Group is the name of a group.
	Group string
}

// listener is one of those of a port.
type listener struct {
	name, hostname string
	group          *group
}

// listeners are all, by port. Those of a port are in the order in which they are tried. The value is immutable.
type listeners map[uint16][]*listener

// SetListeners says which groups the ports beside those of the servers belong to. Of several listeners of one port a request or a
// handshake gets the one whose host name is the nearest to its own.
func (t *Table) SetListeners(all []Listener) {
	next := listeners{}
	for _, l := range all {
		if g := t.groups[l.Group]; g != nil {
			next[l.Port] = append(next[l.Port], &listener{l.Name, l.Hostname, g})
		}
	}
	for _, of := range next {
		slices.SortStableFunc(of, func(a, b *listener) int { return nearer(a.hostname, b.hostname) })
	}
	t.listeners.Store(&next)
}

// nearer orders host names: those without a wildcard come first, then the longer ones, and last the one for every host.
func nearer(a, b string) int {
	wild := func(name string) int { return strings.LastIndexByte(name, '*') + 1 }
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a))
	}
	return cmp.Or(cmp.Compare(min(wild(a), 1), min(wild(b), 1)), cmp.Compare(len(b)-wild(b), len(a)-wild(a)), cmp.Compare(wild(a), wild(b)))
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

// covers says whether a host name of a document is for a name: "*.example.com" for those with one more label, "**.example.com" for those
// with any number, and an empty one for all.
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

// ListenerFor returns the name of the listener of a port for a server name, as the client wrote it, or empty; it is empty for
// ServerPorts, and where no listener covers the name.
func (t *Table) ListenerFor(port uint16, server string) string {
	if l := t.listeners.Load().find(port, message.Hostname(server)); l != nil {
		return l.name
	}
	return ""
}

// none is for names that no listener of their port covers.
var none = &index{}

// at returns the virtual hosts for a connection that comes by a port and a name in lower case.
func (t *Table) at(port uint16, name string) *index {
	if port == ServerPorts {
		return t.index.Load()
	}
	if l := t.listeners.Load().find(port, name); l != nil {
		return l.group.index.Load()
	}
	return none
}

// misdirected says whether a connection was made for another listener of its port than that of a request, whose certificates and policies
// are others.
func (t *Table) misdirected(conn *message.Conn, name string) bool {
	if conn.Listener == ServerPorts || conn.TLS == nil {
		return false
	}
	all := t.listeners.Load()
	return all.find(conn.Listener, message.Hostname(conn.TLS.ServerName)) != all.find(conn.Listener, name)
}

// allGroups yields every group. It is for the goroutine that changes the table, as are allHosts and hostsThatAsk.
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

// hostsThatAsk calls yield with those that want certificates of their clients, and maybe others.
func (t *Table) hostsThatAsk(yield func(*host)) {
	for g := range t.allGroups {
		if x := g.index.Load(); x.asking > 0 {
			x.all(yield)
		}
	}
}
