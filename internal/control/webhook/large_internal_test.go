package webhook

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestLargeReviews checks that one large review runs at a time, that few others wait, and that there is a pause after
// each.
func TestLargeReviews(t *testing.T) {
	l, ctx := newLargeReviews(), t.Context()
	leave, err := l.enter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := l.enter(soon); !errors.Is(err, errLate) {
		t.Errorf("the review that waits for too long gets %v", err)
	}
	waiting := make(chan time.Time)
	go func() {
		leave, err := l.enter(ctx)
		if err != nil {
			t.Error(err)
		} else {
			leave(0)
		}
		waiting <- time.Now()
	}()
	fixture.Eventually(t, "the second review waits", func() error {
		if len(l.places) < cap(l.places) {
			return errors.New("it has not begun")
		}
		return nil
	})
	if _, err := l.enter(ctx); !errors.Is(err, errBusy) {
		t.Errorf("one review too many gets %v", err)
	}
	const worked = 5 * time.Millisecond
	left := time.Now()
	leave(worked)
	if pause := (<-waiting).Sub(left); pause < rest*worked {
		t.Errorf("the pause was %v", pause)
	}
	l.rested = time.Now().Add(time.Hour)
	soon, cancel = context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := l.enter(soon); !errors.Is(err, errLate) || len(l.places)+len(l.turn) > 0 {
		t.Errorf("a review whose time ends during the pause gets %v, and leaves %d places", err, len(l.places))
	}
}
