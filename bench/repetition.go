package main

import (
	"context"
	"sync"
	"time"
)

// repetition describes a number of clients that do the same thing repeatedly.
type repetition struct {
	// proxy is the process whose processor time is measured. It may be nil.
	proxy    *process
	clients  int
	warmUp   time.Duration
	duration time.Duration
	// tolerant reports whether a failure is counted. Otherwise the first failure ends the load.
	tolerant bool
}

// count runs do repeatedly with all clients. Its result includes the failures. turn is different in each call.
func (r repetition) count(ctx context.Context, do func(turn int) error) *tally {
	return r.together(ctx, func(ctx context.Context, begin time.Time, number int, t *tally) {
		for turn := number; ctx.Err() == nil; turn += r.clients {
			if !r.once(begin, t, func() error { return do(turn) }) {
				return
			}
		}
	})
}

// clientWork is the work of one client until ctx ends, or until it fails. Results that were due before begin are not
// counted.
type clientWork func(ctx context.Context, begin time.Time, number int, t *tally)

// together runs all clients and joins their tallies. The proxy's processor time is measured from begin on.
func (r repetition) together(ctx context.Context, work clientWork) *tally {
	begin := time.Now().Add(r.warmUp)
	ctx, cancel := context.WithDeadline(ctx, begin.Add(r.duration))
	defer cancel()
	tallies := make([]*tally, r.clients)
	var group sync.WaitGroup
	for i := range r.clients {
		tallies[i] = &tally{}
		group.Go(func() {
			if work(ctx, begin, i, tallies[i]); tallies[i].failed > 0 && !r.tolerant {
				cancel()
			}
		})
	}
	spent := r.proxy.meter(ctx, begin)
	group.Wait()
	all := join(tallies, r.duration)
	processor, err := spent()
	if err != nil {
		all.fail(err)
	}
	all.processor = processor / time.Duration(max(1, len(all.latencies)))
	return all
}

// once returns false if the load must end.
func (r repetition) once(begin time.Time, t *tally, do func() error) bool {
	from := time.Now()
	err := do()
	switch {
	case err != nil:
		t.fail(err)
	case from.After(begin):
		t.latencies = append(t.latencies, time.Since(from))
	}
	return err == nil || r.tolerant
}
