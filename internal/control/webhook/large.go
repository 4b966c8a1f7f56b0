package webhook

import (
	"context"
	"time"
)

// The limits of large reviews. Decoding a body of maxBody takes a processor for some 100 ms. So one large review is in
// progress at a time, maxWaiting others wait before their bodies are read, and all further ones get 429 at once. After
// a large review, the next one starts after a pause, which is rest times as long as the work of the review, so that
// requests of clients are served meanwhile. The pause is at most maxPause: the review that waits has time left.
const (
	largeBody  = 1 << 20
	maxWaiting = 1
	rest       = 9
	maxPause   = maxTime / 2
)

// largeReviews limits reviews with bodies of more than largeBody bytes.
type largeReviews struct {
	places, turn chan struct{}
	// rested is the time at which the next review may start. Only the review whose turn it is uses it.
	rested time.Time
}

func newLargeReviews() *largeReviews {
	return &largeReviews{places: make(chan struct{}, 1+maxWaiting), turn: make(chan struct{}, 1)}
}

// enter waits until a large review may start. It returns errBusy if too many others wait, and errLate if ctx ends. The
// caller must call leave with the time for which the review has used a processor.
func (l *largeReviews) enter(ctx context.Context) (leave func(worked time.Duration), err error) {
	select {
	case l.places <- struct{}{}:
	default:
		return nil, errBusy
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		<-l.places
		return nil, errLate
	}
	leave = func(worked time.Duration) {
		if worked > 0 {
			l.rested = time.Now().Add(min(rest*worked, maxPause))
		}
		<-l.turn
		<-l.places
	}
	pause := time.NewTimer(time.Until(l.rested))
	defer pause.Stop()
	select {
	case <-pause.C:
		return leave, nil
	case <-ctx.Done():
		leave(0)
		return nil, errLate
	}
}
