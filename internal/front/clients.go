package front

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/panics"
)

// clients bounds the connections of all HTTP clients, with all listeners together, so that those of one never take the descriptors
// that requests of others need. Near the bound, each new connection has one end that waits for a request, as in nginx; beyond it, new ones
// are closed.
type clients struct {
	// most is asked for when the first connection comes: until then the program may change its limits.
	most                    func() int64
	open, accepted, refused atomic.Int64

	mu sync.Mutex
	// leave ends a connection, by its key, that waits for a request, or will.
	leave map[any]func()
}

func newClients() *clients {
	return &clients{most: sync.OnceValue(budget.MaxClients), leave: map[any]func(){}}
}

// nearly is which part of the bound is free when connections are asked to leave: one in sixteen, nginx's number.
const nearly = 16

// enter counts a connection, until gone. It returns false, and counts none, if there are as many as there may be.
func (c *clients) enter() bool {
	c.accepted.Add(1)
	n, most := c.open.Add(1), c.most()
	if most <= 0 {
		return true
	}
	if n > most-most/nearly {
		c.makeRoom()
	}
	if n <= most {
		return true
	}
	c.open.Add(-1)
	c.refused.Add(1)
	return false
}

func (c *clients) gone() { c.open.Add(-1) }

// mayLeave notes how a connection ends that waits for a request, or will; it is called at most once, on a goroutine of its own.
func (c *clients) mayLeave(key any, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave[key] = end
}

// stays forgets what mayLeave has noted.
func (c *clients) stays(key any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.leave, key)
}

// makeRoom has one connection end. Which one is chance: who has most of them loses most.
func (c *clients) makeRoom() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, end := range c.leave {
		delete(c.leave, key)
		panics.Go("front/make room", end)
		return
	}
}

// Clients is how many connections HTTP clients have, how many they may have, where 0 is any number, how many they have made, and how many
// of these were closed because there were too many.
type Clients struct{ Open, Most, Accepted, Refused int64 }

// Clients returns the numbers of this moment.
func (f *Front) Clients() Clients {
	c := f.clients
	return Clients{Open: c.open.Load(), Most: c.most(), Accepted: c.accepted.Load(), Refused: c.refused.Load()}
}

// gone is the end of a connection that begin has counted.
func (k *cohort) gone() {
	k.conns.Add(-1)
	k.group.front.clients.gone()
}

// refuses says that there is no room for a connection, and closes it.
func (k *cohort) refuses(conn net.Conn) bool {
	if k.group.front.clients.enter() {
		return false
	}
	_ = conn.Close()
	return true
}
