package live

import (
	"context"
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/split"
)

// Passthrough handles the TLS connections of a host with TLS passthrough: they are forwarded to a backend without
// decryption.
type Passthrough struct {
	// Backends selects the backend for each connection. It is never empty.
	Backends *split.Split[*balancer.Backend]

	streams *streams
}

// passthrough returns the TLS passthrough settings of a host, or nil if the controller terminates TLS. If all backends
// have weight zero, connections to the host are closed: the controller must not terminate TLS instead, because the
// owner of the host has configured passthrough.
func (t *Table) passthrough(g *group, name string, d *document.Host) *Passthrough {
	if d.Passthrough == "" && len(d.PassthroughSplit) == 0 {
		return nil
	}
	to := t.backends.Split(document.StreamBackends{Backend: d.Passthrough, Split: d.PassthroughSplit})
	if err := to.Check(); err != nil {
		err = fmt.Errorf("passthrough_split: TLS connections are closed: %w", err)
		g.refuse(&Route{Route: exchange.Route{Host: name}, destination: destination{chain: newUnavailable(err)}}, err)
		to = split.Only(balancer.New("none"))
	}
	return &Passthrough{Backends: to, streams: &streams{all: &t.open}}
}

// PassesAny reports whether a port has a host with TLS passthrough. If it returns false, the server name of new
// connections does not have to be read.
func (t *Table) PassesAny(port uint16) bool {
	if port == ServerPorts {
		return t.index.Load().withPassthrough > 0
	}
	return slices.ContainsFunc((*t.listeners.Load())[port],
		func(l *listener) bool { return l.group.index.Load().withPassthrough > 0 })
}

// Passthrough returns the TLS passthrough settings of the host. It returns nil if the controller terminates TLS. server
// is the server name as the client sent it. TLS is always terminated for clients that have sent no server name.
func (h *host) Passthrough(server string) *Passthrough {
	if server == "" {
		return nil
	}
	return h.passthrough
}

// Register registers an open passthrough connection. If the host stops using passthrough, end is called after the drain
// time. The caller must call ended when the connection has ended.
func (p *Passthrough) Register(end context.CancelFunc) (ended func()) {
	return p.streams.add(end, stream{})
}

// passthroughCount returns 1 for a host with TLS passthrough, otherwise 0. The host may be nil.
func (h *host) passthroughCount() int {
	if h == nil || h.passthrough == nil {
		return 0
	}
	return 1
}

// inheritPassthrough moves the open passthrough connections of the previous version of the host (before) to h, even if
// the backend has changed. If h is nil or does not use passthrough, it returns the connections instead, and the caller
// must end them.
func (h *host) inheritPassthrough(before *host) []endingStreams {
	switch {
	case before.passthrough == nil:
		return nil
	case h == nil || h.passthrough == nil:
		return []endingStreams{{streams: before.passthrough.streams}}
	}
	h.passthrough.streams = before.passthrough.streams
	return nil
}

// endPassthrough ends the passthrough connections of all hosts after the drain time.
func (t *Table) endPassthrough() {
	var list []endingStreams
	t.allHosts(func(h *host) { list = append(list, (*host)(nil).inheritPassthrough(h)...) })
	t.drain(list)
}
