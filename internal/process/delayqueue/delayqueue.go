// Package delayqueue implements a queue of values that become due at different times.
//
// It does not use k8s.io/client-go/util/workqueue, because a delayed value there can neither be moved to a later time
// nor removed, and because most of this module does not import client-go.
package delayqueue

import (
	"time"

	"github.com/tidwall/btree"

	"github.com/k8singress/k8singress/internal/model/shrinking"
)

// Queue holds values until they are due. Each value is in the queue at most once. A Queue is not safe for concurrent
// use: the caller must hold a lock that guards the queue and its values.
type Queue[T comparable] struct {
	items shrinking.Map[T, item[T]]
	order *btree.BTreeG[item[T]]
	// sets is the number of calls of Set. It is used to return values with the same time in the order of these calls.
	sets uint64
}

type item[T comparable] struct {
	value  T
	due    time.Time
	number uint64
}

// New returns an empty queue.
func New[T comparable]() *Queue[T] {
	earlier := func(a, b item[T]) bool {
		if a.due.Equal(b.due) {
			return a.number < b.number
		}
		return a.due.Before(b.due)
	}
	return &Queue[T]{order: btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true})}
}

// Set adds a value that becomes due at the given time. If the value is already in the queue, Set changes its time.
func (q *Queue[T]) Set(value T, due time.Time) {
	q.Remove(value)
	q.sets++
	i := item[T]{value, due, q.sets}
	q.items.Set(value, i)
	q.order.Set(i)
}

// Remove removes a value if it is in the queue.
func (q *Queue[T]) Remove(value T) {
	if i, ok := q.items.Find(value); ok {
		q.items.Delete(value)
		q.order.Delete(i)
	}
}

// Contains reports whether a value is in the queue.
func (q *Queue[T]) Contains(value T) bool {
	return q.items.Has(value)
}

// Len returns the number of values in the queue.
func (q *Queue[T]) Len() int { return q.items.Len() }

// Pop removes the value that became due first, and returns it. It returns false if no value is due yet.
func (q *Queue[T]) Pop(now time.Time) (value T, ok bool) {
	first, ok := q.order.Min()
	if !ok || first.due.After(now) {
		return value, false
	}
	q.Remove(first.value)
	return first.value, true
}

// Next returns the time at which the first value becomes due. It returns false if the queue is empty.
func (q *Queue[T]) Next() (time.Time, bool) {
	first, ok := q.order.Min()
	return first.due, ok
}
