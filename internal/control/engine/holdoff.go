package engine

import "time"

const (
	// The pipeline translates and applies changes of Kubernetes objects. It runs when no change has arrived for the
	// duration quiet, but at the latest when the duration longest has passed since the first change.
	quiet   = 50 * time.Millisecond
	longest = 500 * time.Millisecond

	firstRetry = time.Second
	lastRetry  = time.Minute
)

// holdoff delays the pipeline, which translates, renders and applies changes. So the pipeline runs only once for
// several changes that arrive in quick succession.
type holdoff struct {
	// timer fires when the changes must be processed.
	timer *time.Timer
	// first is the time of the oldest unprocessed change, or zero.
	first time.Time
}

func newHoldoff() holdoff { return holdoff{timer: stoppedTimer()} }

func stoppedTimer() *time.Timer {
	timer := time.NewTimer(0)
	timer.Stop()
	return timer
}

// The method change records that a Kubernetes object has changed, and sets the timer accordingly.
func (h *holdoff) change() {
	now := time.Now()
	if h.first.IsZero() {
		h.first = now
	}
	h.timer.Reset(min(quiet, max(0, h.first.Add(longest).Sub(now))))
}

// The method now makes the timer fire at once.
func (h *holdoff) now() { h.timer.Reset(0) }

// done stops the timer and forgets the recorded changes. It must be called after the changes have been processed.
func (h *holdoff) done() {
	h.timer.Stop()
	h.first = time.Time{}
}

// backoff schedules retries after failures. The first delay is a second; it doubles each time, up to a minute.
type backoff struct {
	timer *time.Timer
	next  time.Duration
	armed bool
}

func newBackoff() backoff { return backoff{timer: stoppedTimer(), next: firstRetry} }

// arm schedules a retry, unless one is already scheduled.
func (b *backoff) arm() {
	if !b.armed {
		b.timer.Reset(b.next)
		b.armed = true
		b.next = min(2*b.next, lastRetry)
	}
}

func (b *backoff) succeeded() {
	b.timer.Stop()
	b.armed = false
	b.next = firstRetry
}
