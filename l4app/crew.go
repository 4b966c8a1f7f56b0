package l4app

import "sync"

// crew runs functions on goroutines that it keeps for later. A new goroutine begins with a small stack, which is copied
// again and again until it is as large as a connection needs: that is a tenth of what a short connection costs.
type crew struct {
	mu     sync.Mutex
	idle   []chan func()
	closed bool
}

// idleHands is how many goroutines are kept that have nothing to do.
const idleHands = 128

// run runs f at once, and does not wait. A nil crew keeps nobody.
func (c *crew) run(f func()) {
	if c == nil {
		go f()
		return
	}
	if next := c.wake(); next != nil {
		next <- f
		return
	}
	go c.work(f)
}

func (c *crew) wake() chan func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.idle) - 1
	if last < 0 {
		return nil
	}
	// The one that was busy last has the largest stack.
	next := c.idle[last]
	c.idle = c.idle[:last]
	return next
}

func (c *crew) work(f func()) {
	next := make(chan func(), 1)
	for f != nil {
		f()
		if !c.rest(next) {
			return
		}
		f = <-next
	}
}

// rest returns false when there are enough that rest.
func (c *crew) rest(next chan func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle) >= idleHands {
		return false
	}
	c.idle = append(c.idle, next)
	return true
}

// close keeps nobody any more.
func (c *crew) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, next := range c.idle {
		next <- nil
	}
	c.idle = nil
}
