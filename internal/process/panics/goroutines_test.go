package panics_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestGoroutines checks that a panic ends only its own goroutine, is counted, and calls the functions that end the
// goroutine's work. It covers each kind of goroutine.
func TestGoroutines(t *testing.T) {
	var ended atomic.Int32
	end := func() { ended.Add(1) }
	var group panics.Group
	ctx, cancel := context.WithCancel(t.Context())
	before := panics.Counts()
	panics.Go("test/go", fails, end)
	group.Go("test/group", fails, end)
	group.Go("test/fine", func() {}, end)
	panics.AfterFunc("test/timer", 0, fails)
	panics.AfterContext(ctx, "test/context", fails)
	cancel()
	group.Wait()
	fixture.Holds(t, "all panics are counted", func() bool {
		counts := panics.Counts()
		for _, place := range []string{"test/go", "test/group", "test/timer", "test/context"} {
			if counts[place] != before[place]+1 {
				return false
			}
		}
		return counts["test/fine"] == 0
	})
	fixture.Holds(t, "the ends of two goroutines are called", func() bool { return ended.Load() == 2 })
}

// TestLoop checks that a loop restarts after a panic and ends when its function returns.
func TestLoop(t *testing.T) {
	var starts int
	var group panics.Group
	group.Loop("test/loop", func() {
		if starts++; starts == 1 {
			fails()
		}
	})
	group.Wait()
	if starts != 2 {
		t.Errorf("the loop starts %d times", starts)
	}
}

// TestReports checks that panics at one place are reported at most once per second, and that the next report has the
// number of panics that were left out.
func TestReports(t *testing.T) {
	var reports, leftOut atomic.Int32
	panics.SetReporter(func(place string, caught *panics.Panic, n int) {
		if place == "test/many" && len(caught.Stack) > 0 {
			reports.Add(1)
			leftOut.Add(int32(n))
		}
	})
	begin := time.Now()
	for range 1000 {
		panics.Guard("test/many", fails)
	}
	if limit := 1 + int32(time.Since(begin)/time.Second); reports.Load() > limit {
		t.Errorf("there are %d reports, and %d are allowed", reports.Load(), limit)
	}
	fixture.Holds(t, "a later report counts those that were left out", func() bool {
		panics.Guard("test/many", fails)
		return leftOut.Load() >= 900
	})
}
