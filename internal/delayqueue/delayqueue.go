// Package delayqueue holds values until they are due.
//
// It is not k8s.io/client-go/util/workqueue because a value that is delayed there can neither be moved to a later time nor
// be removed, and because most of this module does not import client-go.
package delayqueue

import (
	"time"

	"github.com/tidwall/btree"
)

// Queue holds values until they are due, each value once at most. Its methods are not safe for use by several goroutines at
// the same time: its owner has a lock, which guards the values as well.
type Queue[T comparable] struct {
	items map[T]item[T]
	order *btree.BTreeG[item[T]]
	// sets counts the calls of Set, so that values with the same time keep their order.
	sets uint64
}

type item[T comparable] struct {
	value  T
	due    time.Time
	number uint64
}

// New returns a queue without values.
func New[T comparable]() *Queue[T] {
	earlier := func(a, b item[T]) bool {
		if a.due.Equal(b.due) {
			return a.number < b.number
		}
		return a.due.Before(b.due)
	}
	return &Queue[T]{items: map[T]item[T]{}, order: btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true})}
}

// Set adds a value that is due at a time, or gives it another time.
func (q *Queue[T]) Set(value T, due time.Time) {
	q.Remove(value)
	q.sets++
	q.items[value] = item[T]{value, due, q.sets}
	q.order.Set(q.items[value])
}

// Remove removes a value, if it is in the queue.
func (q *Queue[T]) Remove(value T) {
	if i, ok := q.items[value]; ok {
		delete(q.items, value)
		q.order.Delete(i)
	}
}

// Contains returns whether a value is in the queue.
func (q *Queue[T]) Contains(value T) bool {
	_, ok := q.items[value]
	return ok
}

// Len returns how many values are in the queue.
func (q *Queue[T]) Len() int { return len(q.items) }

// Pop removes and returns the value that is due first, or false where none is due.
func (q *Queue[T]) Pop(now time.Time) (value T, ok bool) {
	first, ok := q.order.Min()
	if !ok || first.due.After(now) {
		return value, false
	}
	q.Remove(first.value)
	return first.value, true
}

// Next returns when the first value is due, or false for an empty queue.
func (q *Queue[T]) Next() (time.Time, bool) {
	first, ok := q.order.Min()
	return first.due, ok
}
