package live

import (
	"context"
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/split"
)

// Passthrough handles the TLS connections of a host whose backend terminates TLS.
type Passthrough struct {
	// Backends selects the backend of a connection. It always has at least one.
	Backends *split.Split[*balancer.Backend]

	streams *streams
}

// passthrough returns nil for a host whose TLS is terminated here. If no backend has a weight, connections are closed:
// the owner of the host does not want TLS to be terminated here either.
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

// PassesAny reports whether a port has a host with TLS passthrough. Otherwise the server name does not have to be read
// from connections.
func (t *Table) PassesAny(port uint16) bool {
	if port == ServerPorts {
		return t.index.Load().withPassthrough > 0
	}
	return slices.ContainsFunc((*t.listeners.Load())[port],
		func(l *listener) bool { return l.group.index.Load().withPassthrough > 0 })
}

// Passthrough returns the passthrough of a server name on a port. server is as the client sent it, or empty. It returns
// nil if TLS is terminated here, as for all unknown names.
func (t *Table) Passthrough(port uint16, server string) *Passthrough {
	x := t.indexFor(port, message.Hostname(server))
	if x.withPassthrough == 0 || server == "" {
		return nil
	}
	h := x.find(message.Hostname(server))
	if h == nil {
		return nil
	}
	return h.passthrough
}

// Register registers a connection. end is called some time after the host stops passing connections through, as HTTP
// streams end after their route is removed. The caller calls the returned function when the connection has ended.
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

// inheritPassthrough hands the passthrough connections of the previous version of a host to h, even if the backend
// changed. If h has no passthrough, it returns these connections, which have to end.
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

// endPassthrough ends all passthrough connections after the drain time.
func (t *Table) endPassthrough() {
	var list []endingStreams
	t.allHosts(func(h *host) { list = append(list, (*host)(nil).inheritPassthrough(h)...) })
	t.drain(list)
}
