// Package turns implements a queue for work of several namespaces, which take turns in round-robin order. A namespace
// with thousands of objects, or with work that hangs, does not delay other namespaces. Package delayqueue is for work
// that is due at a certain time.
package turns

import (
	"container/list"
	"slices"

	"github.com/k8singress/k8singress/internal/model/shrinking"
)

// Queue holds the values that wait to be processed, in a separate queue (type line) for each namespace. Each value is
// in the queue at most once. A Queue is not safe for concurrent use: the caller must hold a lock.
type Queue[T comparable] struct {
	// max is the maximum number of values that are processed at the same time. share is the maximum for one namespace.
	max, share int
	// running contains the values that are being processed: Pop has returned them, and Done was not called yet. held is
	// the number of these values for each namespace.
	running map[T]*running
	held    map[string]int
	// turns lists the namespaces in round-robin order: the namespace at the front is next. A namespace keeps its
	// position while it has no waiting values. If it lost its position, a namespace that rarely adds a value would
	// always wait behind the busy namespaces.
	turns   []string
	lines   map[string]*line
	waiting shrinking.Map[T, place]
}

// running is a value that is being processed. It counts towards the maximum for the namespace that it was queued for.
type running struct {
	namespace string
	// again is set if the value was pushed again while it was being processed. Done then adds it to the queue again.
	again *request
}

type request struct {
	namespace string
	first     bool
}

// line is the queue of the values of one namespace. All values in the list first are processed before the values in the
// list later.
type line struct{ first, later list.List }

// place is the position of a waiting value: a list and the element of this list.
type place struct {
	in *list.List
	at *list.Element
}

// New returns an empty queue. limit is the maximum number of values that are processed at the same time, and share the
// maximum for one namespace.
func New[T comparable](limit, share int) *Queue[T] {
	return &Queue[T]{
		max: limit, share: share, running: map[T]*running{}, held: map[string]int{}, lines: map[string]*line{},
	}
}

// Push adds a value to the end of the queue of a namespace. If first is true, the value comes before all values that
// were added with first = false. A value that is already waiting keeps its position. A value that is being processed is
// added to the queue after Done.
func (q *Queue[T]) Push(namespace string, value T, first bool) {
	if r := q.running[value]; r != nil {
		r.again = &request{namespace, first}
		return
	}
	if q.waiting.Has(value) {
		return
	}
	l := q.lines[namespace]
	if l == nil {
		l = &line{}
		q.forgetIdle()
		q.lines[namespace] = l
		q.turns = append(q.turns, namespace)
	}
	in := &l.later
	if first {
		in = &l.first
	}
	q.waiting.Set(value, place{in, in.PushBack(value)})
}

// Remove removes a waiting value. If the value is being processed, the processing continues, but Done does not add the
// value to the queue again.
func (q *Queue[T]) Remove(value T) {
	if r := q.running[value]; r != nil {
		r.again = nil
	}
	if p, ok := q.waiting.Find(value); ok {
		p.in.Remove(p.at)
		q.waiting.Delete(value)
	}
}

// Pop removes the next value from the queue and returns it. The value counts as being processed until Done is called.
// Pop returns false if no value is waiting, or if all waiting values would exceed the maximum of the queue or of their
// namespace. A namespace that has reached its own maximum is skipped, but keeps its position in the round-robin order.
func (q *Queue[T]) Pop() (value T, ok bool) {
	for turn := 0; len(q.running) < q.max && turn < len(q.turns); {
		namespace := q.turns[turn]
		at := q.lines[namespace].front()
		if at == nil || q.held[namespace] >= q.share {
			turn++
			continue
		}
		q.turns = append(slices.Delete(q.turns, turn, turn+1), namespace)
		value = at.Value.(T)
		q.Remove(value)
		q.running[value] = &running{namespace: namespace}
		q.held[namespace]++
		return value, true
	}
	return value, false
}

func (l *line) front() *list.Element {
	if at := l.first.Front(); at != nil {
		return at
	}
	return l.later.Front()
}

// Done must be called when a value that Pop has returned is no longer being processed.
func (q *Queue[T]) Done(value T) {
	r := q.running[value]
	delete(q.running, value)
	if q.held[r.namespace]--; q.held[r.namespace] == 0 {
		delete(q.held, r.namespace)
	}
	if r.again != nil {
		q.Push(r.again.namespace, value, r.again.first)
	}
}

// GiveBack moves the namespace of a value to the front of the round-robin order. It is called if the value that Pop has
// returned could not be processed, so that the namespace does not lose its turn. It must be called before Done.
func (q *Queue[T]) GiveBack(value T) {
	r := q.running[value]
	if r == nil {
		return
	}
	if turn := slices.Index(q.turns, r.namespace); turn > 0 {
		q.turns = slices.Insert(slices.Delete(q.turns, turn, turn+1), 0, r.namespace)
	}
}

// maxIdle limits the memory for namespaces without waiting values. If this many namespaces are in the queue, the
// namespaces without waiting values are removed and lose their positions.
const maxIdle = 4096

func (q *Queue[T]) forgetIdle() {
	if len(q.turns) < maxIdle {
		return
	}
	q.turns = slices.DeleteFunc(q.turns, func(namespace string) bool {
		idle := q.lines[namespace].front() == nil
		if idle {
			delete(q.lines, namespace)
		}
		return idle
	})
}

// Running returns the number of values that are being processed.
func (q *Queue[T]) Running() int { return len(q.running) }

// Len returns the number of waiting values.
func (q *Queue[T]) Len() int { return q.waiting.Len() }

// Clear removes all waiting values and returns them.
func (q *Queue[T]) Clear() []T {
	all := make([]T, 0, q.waiting.Len())
	for value := range q.waiting.Keys() {
		all = append(all, value)
	}
	q.turns, q.lines = nil, map[string]*line{}
	q.waiting.Clear()
	return all
}
