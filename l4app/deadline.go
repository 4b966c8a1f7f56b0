package l4app

import (
	"sync"
	"time"
)

// deadline is a point in time that can be moved while somebody waits for it.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	// moved counts the calls of set, so that the timer of an older one does nothing.
	moved  int
	over   chan struct{}
	isOver bool
}

func newDeadline() *deadline { return &deadline{over: make(chan struct{})} }

// passed is closed when the time has come.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// set moves the deadline. The zero time stands for never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.moved++
	if d.timer != nil {
		d.timer.Stop()
	}
	if d.isOver {
		d.over, d.isOver = make(chan struct{}), false
	}
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.pass()
		return
	}
	moved := d.moved
	d.timer = time.AfterFunc(left, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.moved == moved {
			d.pass()
		}
	})
}

func (d *deadline) pass() {
	close(d.over)
	d.isOver = true
}
