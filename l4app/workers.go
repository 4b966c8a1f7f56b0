package l4app

import (
	"sync"

	"github.com/k8singress/k8singress/internal/process/panics"
)

// workerPool runs functions on goroutines that it reuses. A new goroutine starts with a small stack, which is copied
// repeatedly until it is large enough for a connection. These copies take a tenth of the time of a short connection.
type workerPool struct {
	mu     sync.Mutex
	idle   []chan func()
	closed bool
}

// maxIdleWorkers is the maximum number of idle goroutines to keep.
const maxIdleWorkers = 128

// run runs f on another goroutine without waiting for it. A nil pool keeps no goroutines.
func (p *workerPool) run(f func()) {
	if p == nil {
		panics.Go("l4app/connection", f)
		return
	}
	if next := p.wake(); next != nil {
		next <- f
		return
	}
	panics.Go("l4app/connection", func() { p.work(f) })
}

func (p *workerPool) wake() chan func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	// The goroutine that was busy last has the largest stack.
	next := p.idle[last]
	p.idle = p.idle[:last]
	return next
}

func (p *workerPool) work(f func()) {
	next := make(chan func(), 1)
	for f != nil {
		f()
		if !p.park(next) {
			return
		}
		f = <-next
	}
}

// park adds a goroutine to the idle ones. It returns false if the goroutine must end, because there are enough or the
// pool is closed.
func (p *workerPool) park(next chan func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= maxIdleWorkers {
		return false
	}
	p.idle = append(p.idle, next)
	return true
}

// close ends the idle goroutines. No goroutine is kept afterwards.
func (p *workerPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, next := range p.idle {
		next <- nil
	}
	p.idle = nil
}
