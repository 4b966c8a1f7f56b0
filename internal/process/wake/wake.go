// Package wake wakes goroutines that wait for work.
package wake

import (
	"context"
	"math"
	"time"
)

// Signal wakes one goroutine, which receives from it. Several calls of Send before the goroutine receives wake it once.
// The zero value wakes no goroutine; use New.
type Signal chan struct{}

// New returns a Signal.
func New() Signal { return make(Signal, 1) }

// Send wakes the goroutine that receives from the signal. If it is busy, its next receive returns at once. Send does
// not block.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Never is a duration that Loop does not wait for: only the signal ends the wait.
const Never = time.Duration(math.MaxInt64)

// Loop calls work at once, after each Send, and when the duration that work has returned has passed, until ctx ends. A
// duration of 0 or less means at once.
func (s Signal) Loop(ctx context.Context, work func() (wait time.Duration)) {
	timer := time.NewTimer(Never)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(work())
		select {
		case <-ctx.Done():
		case <-s:
		case <-timer.C:
		}
	}
}
