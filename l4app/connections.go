package l4app

import (
	"io"
	"sync"
)

// connections are those that a chain serves.
type connections struct {
	mu      sync.Mutex
	open    map[io.Closer]struct{}
	refused bool
	closed  bool
	// ended is closed when no connection is there and none may come.
	ended chan struct{}
}

func newConnections() *connections {
	return &connections{open: map[io.Closer]struct{}{}, ended: make(chan struct{})}
}

// add returns false when no new connection is taken.
func (c *connections) add(conn io.Closer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused {
		return false
	}
	c.open[conn] = struct{}{}
	return true
}

func (c *connections) remove(conn io.Closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
	c.end()
}

// refuse takes no new connection any more. The channel is closed when the last one has ended. It is called once.
func (c *connections) refuse() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
	c.end()
	return c.ended
}

// close closes those that are there.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		// Whoever reads from it finds out; there is nobody else to tell.
		_ = conn.Close()
	}
}

func (c *connections) end() {
	if c.refused && !c.closed && len(c.open) == 0 {
		c.closed = true
		close(c.ended)
	}
}
