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

// ServerPorts is used in place of a port number for all ports of Caddy's HTTP servers, which serve the virtual hosts of
// Ingresses.
const ServerPorts uint16 = 0

// group holds the virtual hosts of one listener group, which are the same for all listeners in the group.
type group struct {
	index atomic.Pointer[index]
	// refused maps host names to the routes of the host that are not served as configured.
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

// Listener serves the virtual hosts of a listener group on a port that is not one of the server ports. Several
// listeners with different host names may share a port.
type Listener struct {
	// Name is unique among all listeners.
	Name string
	Port uint16
	// Hostname limits the listener to certain host names. It may begin with a wildcard. If it is empty, the listener
	// serves all host names.
	Hostname string
	// Group is the name of a listener group.
	Group string
}

// listener is one listener of a port.
type listener struct {
	name, hostname string
	group          *group
}

// listeners maps port numbers to listeners. The listeners of a port are sorted by the specificity of their host names.
// The map is immutable.
type listeners map[uint16][]*listener

// SetListeners replaces the listeners of all ports except the server ports. If a port has several listeners, the
// listener with the most specific matching host name is used. It is compared with the host of the request or the server
// name of the handshake.
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

// compareSpecificity compares host names, so that more specific names come first: names without a wildcard come before
// names with a wildcard, longer names before shorter ones, and the empty name, which covers all names, comes last.
func compareSpecificity(a, b string) int {
	wild := func(name string) int { return strings.LastIndexByte(name, '*') + 1 }
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a))
	}
	return cmp.Or(cmp.Compare(min(wild(a), 1), min(wild(b), 1)), cmp.Compare(len(b)-wild(b), len(a)-wild(a)),
		cmp.Compare(wild(a), wild(b)))
}

// find returns the listener of a port that covers name, or nil. name must be in lower case.
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

// ListenerFor returns the name of the listener that serves a server name on a port. server is the server name as the
// client sent it. It may be empty. ListenerFor returns an empty string for ServerPorts, and if no listener covers the
// name.
func (t *Table) ListenerFor(port uint16, server string) string {
	if l := t.listeners.Load().find(port, message.Hostname(server)); l != nil {
		return l.name
	}
	return ""
}

// emptyIndex is an index without hosts. It is used for a name that is not covered by any listener of the port.
var emptyIndex = &index{}

// indexFor returns the virtual hosts that are served on a port for requests to name. name must be in lower case.
func (t *Table) indexFor(port uint16, name string) *index {
	if port == ServerPorts {
		return t.index.Load()
	}
	if l := t.listeners.Load().find(port, name); l != nil {
		return l.group.index.Load()
	}
	return emptyIndex
}

// misdirected reports whether the server name of the TLS handshake and the host of the request belong to different
// listeners of the port, which may have different certificates and policies.
func (t *Table) misdirected(conn *message.Conn, name string) bool {
	if conn.Listener == ServerPorts || conn.TLS == nil {
		return false
	}
	all := t.listeners.Load()
	return all.find(conn.Listener, message.Hostname(conn.TLS.ServerName)) != all.find(conn.Listener, name)
}

// allGroups yields every group. Only the goroutine that changes the table may call allGroups, allHosts and
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

// hostsWithClientAuth calls yield with every host of each group that contains a host with a policy for client
// certificates. The other hosts in such a group may have no policy, so yield must check for it.
func (t *Table) hostsWithClientAuth(yield func(*host)) {
	for g := range t.allGroups {
		if x := g.index.Load(); x.withClientAuth > 0 {
			x.all(yield)
		}
	}
}
