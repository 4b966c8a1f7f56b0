package live

import (
	"context"
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/split"
)

// Passthrough is what becomes of the TLS connections of a host whose backend ends TLS itself.
type Passthrough struct {
	// Backends share them. There is always one to choose.
	Backends *split.Split[*balancer.Backend]

	streams *streams
}

// passthrough is nil for a host whose TLS ends here. Where no backend has a weight the connections are closed: the owner of
// the host does not want their TLS to end here either.
func (t *Table) passthrough(g *group, name string, d *document.Host) *Passthrough {
	if d.Passthrough == "" && len(d.PassthroughSplit) == 0 {
		return nil
	}
	to := t.backends.Split(document.StreamBackends{Backend: d.Passthrough, Split: d.PassthroughSplit})
	if err := to.Check(); err != nil {
		err = fmt.Errorf("passthrough_split: TLS connections are closed: %w", err)
		g.refuse(&Route{Route: exchange.Route{Host: name}, destination: destination{chain: newClosed(err)}}, err)
		to = split.Only(balancer.New("none"))
	}
	return &Passthrough{Backends: to, streams: &streams{all: &t.open}}
}

// PassesAny says whether there is a host whose TLS ends elsewhere, for connections that come by a port. Without one nobody need look
// at names.
func (t *Table) PassesAny(port uint16) bool {
	if port == ServerPorts {
		return t.index.Load().passing > 0
	}
	return slices.ContainsFunc((*t.listeners.Load())[port], func(l *listener) bool { return l.group.index.Load().passing > 0 })
}

// Passthrough returns what becomes of a TLS connection that comes by a port for a server name, as the client wrote it, or empty. It is
// nil where TLS ends here: that is so for all names that nobody has.
func (t *Table) Passthrough(port uint16, server string) *Passthrough {
	x := t.at(port, message.Hostname(server))
	if x.passing == 0 || server == "" {
		return nil
	}
	h := x.find(message.Hostname(server))
	if h == nil {
		return nil
	}
	return h.passthrough
}

// Follow notes that a connection has begun. It has end called some time after the host has ceased to pass connections
// through, as streams of HTTP end with their route. The function that it returns is to be called when the connection has
// ended.
func (p *Passthrough) Follow(end context.CancelFunc) (ended func()) {
	return p.streams.enter(end, stream{})
}

// passing is one for a host whose TLS ends elsewhere.
func (h *host) passing() int {
	if h == nil || h.passthrough == nil {
		return 0
	}
	return 1
}

// inheritPassthrough gives a host the connections that were passed through for it before, whoever gets them from now on, and
// returns them if nobody has them.
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

// endPassthrough ends what was passed through, when its time is over.
func (t *Table) endPassthrough() {
	var list []endingStreams
	t.allHosts(func(h *host) { list = append(list, (*host)(nil).inheritPassthrough(h)...) })
	t.drain(list)
}
