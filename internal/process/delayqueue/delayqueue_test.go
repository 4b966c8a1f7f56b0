package delayqueue_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/k8singress/k8singress/internal/process/delayqueue"
)

func TestOrder(t *testing.T) {
	q := delayqueue.New[string]()
	if _, ok := q.Next(); ok {
		t.Error("an empty queue has a time")
	}
	now := time.Now()
	q.Set("late", now.Add(3*time.Second))
	q.Set("early", now.Add(2*time.Second))
	q.Set("removed", now.Add(-time.Second))
	q.Set("early", now)
	q.Set("second", now)
	q.Remove("removed")
	q.Remove("removed")
	for _, want := range []string{"early", "second"} {
		if got, ok := q.Pop(now); !ok || got != want {
			t.Errorf("%q comes in place of %q", got, want)
		}
	}
	if got, ok := q.Pop(now); ok {
		t.Errorf("%q is not due", got)
	}
	if at, ok := q.Next(); !ok || !at.Equal(now.Add(3*time.Second)) || q.Len() != 1 || !q.Contains("late") ||
		q.Contains("early") {
		t.Errorf("the next is at %v, of %d", at, q.Len())
	}
}

// TestAgainstList checks that the queue returns the same values as a sorted list after random operations.
func TestAgainstList(t *testing.T) {
	begin := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		q, want := delayqueue.New[int](), map[int]int{}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			value := rapid.IntRange(0, 9).Draw(t, "value")
			if rapid.Bool().Draw(t, "remove") {
				q.Remove(value)
				delete(want, value)
				continue
			}
			want[value] = rapid.IntRange(0, 5).Draw(t, "due")
			q.Set(value, begin.Add(time.Duration(want[value])))
		}
		if q.Len() != len(want) {
			t.Fatalf("%d values are in it, want %d", q.Len(), len(want))
		}
		for _, due := range slices.Sorted(maps.Values(want)) {
			at := begin.Add(time.Duration(due))
			if _, early := q.Pop(at.Add(-1)); early {
				t.Fatalf("a value comes before %d", due)
			}
			if value, ok := q.Pop(at); !ok || want[value] != due {
				t.Fatalf("%d comes at %d", value, due)
			}
		}
	})
}
