package live

import (
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
)

// named are the names of a handshake: its own, and that of its versions.
type named struct{ name, versions string }

func nameOf(h ir.Handshake) *named { return &named{h.Name(), h.Versions()} }

// Handshakes says whether the handshake for a server name is to be that of a policy, by the policy's name. The name of the
// server is as the client wrote it, or empty. A policy with nothing but versions takes the handshakes with the same versions,
// too: it stands behind the others, for those that Caddy's configuration does not have yet. A name that nobody has may have
// to be refused; no policy takes it then.
func (t *Table) Handshakes(server, policy string) bool {
	h := t.index.Load().find(message.Hostname(server))
	g := t.global.handshakes.Load()
	if g.reject && t.ready.Load() && (h == nil || h.name == "" || server == "") {
		return false
	}
	names := g.names
	if h != nil && h.handshake != nil {
		names = nameOf(h.handshake.Effective(g.onlyHTTP1))
	}
	return policy == names.name || policy == names.versions
}

// handshakes is what ir.Global says of them.
type handshakes struct {
	reject, onlyHTTP1 bool
	names             *named
}

func newHandshakes(g *ir.Global) *handshakes {
	return &handshakes{g.RejectUnknown, g.OnlyHTTP1, nameOf(g.TLS.Effective(g.OnlyHTTP1))}
}

// notePolicy keeps account of the hosts with a policy of their own.
func (t *Table) notePolicy(name string, d *document.Host) {
	if d == nil || d.TLS == nil {
		delete(t.policies, name)
		return
	}
	t.policies[name] = *d.TLS
}

// Wanted returns the handshakes that hosts want besides those of versions alone, sorted by name. It is for the goroutine
// that changes the table.
func (t *Table) Wanted() []ir.Handshake {
	w := document.NewWanted(t.Global())
	for _, p := range t.policies {
		w.Add(p)
	}
	return w.List()
}
