package l4app

import (
	"sync"

	"github.com/k8singress/k8singress/internal/process/panics"
)

// workerPool runs functions on goroutines that it reuses. A new goroutine has a small stack, which Go has to enlarge
// several times before it is large enough to serve a connection. For a short connection, this would take a tenth of the
// total time.
type workerPool struct {
	mu     sync.Mutex
	idle   []chan func()
	closed bool
}

// maxIdleWorkers is the maximum number of idle goroutines that are kept for reuse.
const maxIdleWorkers = 128

// run runs f on another goroutine and does not wait for it. If p is nil, a new goroutine is started.
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
	// Use the goroutine that became idle last, because its stack is the largest.
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

// park makes the goroutine of the caller available for reuse. It returns false if this goroutine must end, because
// there are enough idle goroutines or the pool is closed.
func (p *workerPool) park(next chan func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= maxIdleWorkers {
		return false
	}
	p.idle = append(p.idle, next)
	return true
}

// close ends the idle goroutines. Goroutines that are running end after their current function.
func (p *workerPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, next := range p.idle {
		next <- nil
	}
	p.idle = nil
}
