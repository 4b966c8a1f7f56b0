package webhook

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate"
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
	leave, err = l.enter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if leave(maxTime); time.Until(l.rested) > maxPause {
		t.Errorf("a review that waits has only %v left", maxTime-time.Until(l.rested))
	}
	l.rested = time.Now().Add(time.Hour)
	soon, cancel = context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := l.enter(soon); !errors.Is(err, errLate) || len(l.places)+len(l.turn) > 0 {
		t.Errorf("a review whose time ends during the pause gets %v, and leaves %d places", err, len(l.places))
	}
}

// TestWaitingIsNoWork checks that the pause after a large review depends neither on the time for which the review has
// waited for others, nor on its own pauses.
func TestWaitingIsNoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(nil, zap.NewNop())
		h.pacer.free <- struct{}{}
		time.AfterFunc(maxTime/10, func() { <-h.pacer.free })
		body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",` +
			`"operation":"DELETE","kind":{"group":"networking.k8s.io","version":"v1","kind":"Ingress"}}}` +
			strings.Repeat(" ", largeBody)
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		begin := time.Now()
		answer, err := h.review(t.Context(), &translate.View{}, r, begin)
		if err != nil || !answer.Response.Allowed {
			t.Fatal(answer, err)
		}
		if time.Since(begin) < maxTime/10 {
			t.Error("the review has not waited")
		}
		// On the clock of synctest, work takes no time.
		if !h.large.rested.IsZero() {
			t.Errorf("the pause is %v", time.Until(h.large.rested))
		}
	})
}
