package wake_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/process/wake"
)

// TestLoop checks when Loop calls its function: at once, after the time that the function has returned, and after each
// signal.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		begin, s := time.Now(), wake.New()
		waits := []time.Duration{time.Minute, 0, -time.Second, time.Hour, wake.Never, wake.Never}
		var calls []time.Duration
		time.AfterFunc(2*time.Minute, s.Send)
		time.AfterFunc(72*time.Hour, s.Send)
		time.AfterFunc(100*time.Hour, end)
		s.Loop(ctx, func() time.Duration {
			calls = append(calls, time.Since(begin))
			return waits[len(calls)-1]
		})
		want := []time.Duration{0, time.Minute, time.Minute, time.Minute, 2 * time.Minute, 72 * time.Hour}
		if !slices.Equal(calls, want) || time.Since(begin) != 100*time.Hour {
			t.Errorf("the calls are after %v, and the loop ends after %v", calls, time.Since(begin))
		}
	})
}

// TestSendWhileWorking checks that Send does not wait while the loop works, and that several signals cause one more
// call.
func TestSendWhileWorking(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	s, calls := wake.New(), 0
	s.Loop(ctx, func() time.Duration {
		s.Send()
		s.Send()
		if calls++; calls == 2 {
			end()
		}
		return wake.Never
	})
	if calls != 2 {
		t.Errorf("there are %d calls, want 2", calls)
	}
}

// TestZero checks that sending to the zero value does nothing.
func TestZero(*testing.T) {
	var s wake.Signal
	s.Send()
}
