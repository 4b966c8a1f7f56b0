package l4app

import (
	"net"
	"sync"
)

const (
	// datagramSize is more than the largest UDP datagram.
	datagramSize = 64 << 10
	// queued is how many datagrams of one client may wait for the backend. More are dropped, as UDP allows.
	queued = 64
	// mostClients is how many clients one port remembers. Each one costs a socket towards a backend; where there are more,
	// new ones wait until old ones are idle. Their addresses may be forged, so there has to be a limit.
	mostClients = 16 << 10
)

// receive gives each client of a UDP socket a connection of its own. They end with the socket.
func (p *port) receive(socket net.PacketConn) {
	clients := &clients{open: map[string]*client{}}
	defer clients.close()
	buffer := make([]byte, datagramSize)
	pause := firstPause
	for {
		n, from, err := socket.ReadFrom(buffer)
		if err != nil {
			if !p.pauses(err, pause) {
				return
			}
			pause = min(2*pause, lastPause)
			continue
		}
		pause = firstPause
		p.datagram(clients, socket, from, append([]byte(nil), buffer[:n]...))
	}
}

func (p *port) datagram(all *clients, socket net.PacketConn, from net.Addr, data []byte) {
	c, isNew := all.get(from.String(), func() *client { return newClient(socket, from, p.chain.Load().idle) })
	if c == nil {
		return
	}
	select {
	case c.received <- data:
	default:
	}
	if isNew {
		p.serving.Go(func() {
			defer all.remove(c)
			p.handle(c)
		})
	}
}

// clients are the clients of one UDP socket, by address.
type clients struct {
	mu   sync.Mutex
	open map[string]*client
}

// get returns nil when there are too many.
func (c *clients) get(address string, create func() *client) (found *client, isNew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// One that is about to end takes no datagrams any more.
	if found := c.open[address]; found != nil && !found.isClosed() {
		return found, false
	}
	if len(c.open) >= mostClients {
		return nil, false
	}
	found = create()
	c.open[address] = found
	return found, true
}

func (c *clients) remove(gone *client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if address := gone.from.String(); c.open[address] == gone {
		delete(c.open, address)
	}
}

func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, each := range c.open {
		_ = each.Close()
	}
}
