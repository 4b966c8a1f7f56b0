package engine

import "time"

const (
	// quiet is the time without changes before the pipeline runs. longest is the maximum time by which further changes
	// can delay it.
	quiet   = 50 * time.Millisecond
	longest = 500 * time.Millisecond

	firstRetry = time.Second
	lastRetry  = time.Minute
)

// holdoff combines changes that arrive together into one run of the pipeline.
type holdoff struct {
	// timer fires when the pipeline must run.
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

// change records a change and schedules the pipeline.
func (h *holdoff) change() {
	now := time.Now()
	if h.first.IsZero() {
		h.first = now
	}
	h.timer.Reset(min(quiet, max(0, h.first.Add(longest).Sub(now))))
}

// now makes the pipeline run at once.
func (h *holdoff) now() { h.timer.Reset(0) }

// done resets the holdoff after the pipeline has run.
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
