package status

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
)

func objectIn(namespace string, n int) ir.Ref {
	return ir.Ref{Kind: "Ingress", Namespace: namespace, Name: fmt.Sprint("web-", n)}
}

// TestTenant10StatusBeforeEvents checks that the status of an object does not wait for Events or for objects of other
// namespaces, and that Events of one namespace do not wait for all Events of another.
func TestTenant10StatusBeforeEvents(t *testing.T) {
	q, now := newQueue(), time.Now()
	var hostile []ir.Ref
	for n := range 1000 {
		hostile = append(hostile, objectIn("b", n))
	}
	q.add(hostile)
	begun, _ := q.next(now)
	if len(begun) != statusWriters+eventWriters {
		t.Fatalf("%d writes are under way", len(begun))
	}
	victim := objectIn("a", 0)
	q.add([]ir.Ref{victim})
	seen := map[task]int{}
	for round := 1; len(seen) < 2 && round < 10; round++ {
		// All active tasks end, and new ones start.
		for _, written := range begun {
			q.done(written, nil)
		}
		begun, _ = q.next(now)
		for _, t := range begun {
			if t.object == victim {
				seen[t] = round
			}
		}
	}
	if seen[task{object: victim}] != 1 || seen[task{object: victim, events: true}] != 1 {
		t.Errorf("the victim comes in rounds %v", seen)
	}
}

// TestStatusWhileEventsHang checks that statuses are written while requests that write Events get no response.
func TestStatusWhileEventsHang(t *testing.T) {
	q, now := newQueue(), time.Now()
	for n := range 100 {
		q.add([]ir.Ref{objectIn("b", n)})
	}
	statuses := 0
	for begun, _ := q.next(now); len(begun) > 0; begun, _ = q.next(now) {
		for _, t := range begun {
			if !t.events {
				statuses++
				q.done(t, nil)
			}
		}
	}
	if statuses != 100 {
		t.Errorf("%d statuses are written", statuses)
	}
}

// TestRetries checks that a failing task is retried with growing delays, and that a task with new content is not
// delayed.
func TestRetries(t *testing.T) {
	q := newQueue()
	ref := objectIn("a", 0)
	q.add([]ir.Ref{ref})
	status := task{object: ref}
	for n := range 20 {
		now := time.Now().Add(lastRetry)
		begun, _ := q.next(now)
		for _, t := range begun {
			if t == status {
				q.done(t, errors.New("refused"))
			} else {
				q.done(t, nil)
			}
		}
		if n < 10 {
			continue
		}
		if again, rest := q.next(time.Now()); len(again) != 0 || rest < lastRetry/2 || rest > lastRetry {
			t.Fatalf("after %d failures %v comes at once, or in %v", n+1, again, rest)
		}
	}
	q.add([]ir.Ref{ref})
	if begun, _ := q.next(time.Now()); len(begun) != 2 {
		t.Errorf("%v is begun when there is something else to write", begun)
	}
}
