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
	timer *time.Timer
	// first is when the oldest change came that has not been worked on; it is zero when there is none.
	first time.Time
}

func newHoldoff() holdoff {
	timer := time.NewTimer(0)
	timer.Stop()
	return holdoff{timer: timer}
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

// later lets the pipeline run after a time, if no change comes before.
func (h *holdoff) later(d time.Duration) { h.timer.Reset(d) }

// fired returns a channel that receives when the pipeline is to run.
func (h *holdoff) fired() <-chan time.Time { return h.timer.C }

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

func newBackoff() backoff {
	timer := time.NewTimer(0)
	timer.Stop()
	return backoff{timer: timer, next: firstRetry}
}

func (b *backoff) failed() {
	b.timer.Reset(b.next)
	b.armed = true
	b.next = min(2*b.next, lastRetry)
}

// arm is like failed, but for a failure that is to be tried again already.
func (b *backoff) arm() {
	if !b.armed {
		b.failed()
	}
}

func (b *backoff) succeeded() {
	b.timer.Stop()
	b.armed = false
	b.next = firstRetry
}
