package engine

import "time"

const (
	// quiet is how long nothing may change before the pipeline runs, longest how long changes may put it off.
	quiet   = 50 * time.Millisecond
	longest = 500 * time.Millisecond

	firstRetry = time.Second
	lastRetry  = time.Minute
)

// holdoff gathers changes that come together into one run of the pipeline.
type holdoff struct {
	// timer fires when the pipeline is to run.
	timer *time.Timer
	// first is when the oldest change came that has not been worked on; it is zero when there is none.
	first time.Time
}

func newHoldoff() holdoff { return holdoff{timer: stoppedTimer()} }

func stoppedTimer() *time.Timer {
	timer := time.NewTimer(0)
	timer.Stop()
	return timer
}

// change notes a change.
func (h *holdoff) change() {
	now := time.Now()
	if h.first.IsZero() {
		h.first = now
	}
	h.timer.Reset(min(quiet, max(0, h.first.Add(longest).Sub(now))))
}

// now lets the pipeline run at once.
func (h *holdoff) now() { h.timer.Reset(0) }

// done says that the pipeline has run.
func (h *holdoff) done() {
	h.timer.Stop()
	h.first = time.Time{}
}

// backoff is when what failed is tried again: after a second, then twice as long each time, at most a minute.
type backoff struct {
	timer *time.Timer
	next  time.Duration
	armed bool
}

func newBackoff() backoff { return backoff{timer: stoppedTimer(), next: firstRetry} }

// arm has what failed tried again, unless it is to be already.
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
