package document

import (
	"cmp"
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
)

// Handshakes returns those that hosts want besides those of versions alone, which every structure has. They are sorted by
// name.
func (l *Live) Handshakes() []ir.Handshake {
	global := &ir.Global{}
	if l != nil && l.Global != nil {
		global = l.Global
	}
	w := NewWanted(global)
	if l != nil {
		for _, h := range l.Hosts {
			if h.TLS != nil {
				w.Add(*h.TLS)
			}
		}
	}
	return w.List()
}

// Wanted gathers handshakes.
type Wanted struct {
	global *ir.Global
	found  map[string]ir.Handshake
}

// NewWanted begins with that of all hosts without a policy of their own.
func NewWanted(global *ir.Global) *Wanted {
	w := &Wanted{global, map[string]ir.Handshake{}}
	w.Add(global.TLS)
	return w
}

// Add adds that of a host.
func (w *Wanted) Add(p ir.TLSPolicy) {
	if h := p.Effective(w.global.OnlyHTTP1); h.Name() != h.Versions() {
		w.found[h.Name()] = h
	}
}

// List returns them sorted by name.
func (w *Wanted) List() []ir.Handshake {
	return slices.SortedFunc(maps.Values(w.found), func(a, b ir.Handshake) int { return cmp.Compare(a.Name(), b.Name()) })
}
