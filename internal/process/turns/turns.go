// Package turns queues work of several namespaces in round-robin order. A namespace with thousands of objects, or with
// work that hangs, does not delay other namespaces. Package delayqueue is for work that is due at a certain time.
package turns

import (
	"container/list"
	"slices"
)

// Queue holds the values that wait for one kind of work. Each value is in the queue at most once. The methods are not
// safe for concurrent use: the owner of the queue must hold a lock.
type Queue[T comparable] struct {
	// most is the maximum number of running values, and share the maximum for one namespace.
	max, share int
	// running has the values that are being worked on. held is their number for each namespace.
	running map[T]*running
	held    map[string]int
	// turns has the namespaces in the order of their turns. A namespace without values keeps its place. Otherwise, if
	// only one value can run at a time, it would lose its turn to namespaces that always have values.
	turns   []string
	lines   map[string]*line
	waiting map[T]place
}

// running is a value that is being worked on. It uses the share of the namespace that it was popped from.
type running struct {
	namespace string
	// again is set if the value was pushed again while it runs: it has to wait again afterwards.
	again *request
}

type request struct {
	namespace string
	first     bool
}

// line holds the waiting values of one namespace. The values in first come before the values in later.
type line struct{ first, later list.List }

// place is the position of a waiting value.
type place struct {
	in *list.List
	at *list.Element
}

// New returns an empty queue. most is the maximum number of running values, and share the maximum for one namespace.
func New[T comparable](limit, share int) *Queue[T] {
	return &Queue[T]{
		max: limit, share: share, running: map[T]*running{}, held: map[string]int{}, lines: map[string]*line{},
		waiting: map[T]place{},
	}
}

// Push adds a value at the end of a namespace's line. With first set, it comes before all values that were added
// without it. A value that already waits keeps its place. A value that is running waits again after Done.
func (q *Queue[T]) Push(namespace string, value T, first bool) {
	if r := q.running[value]; r != nil {
		r.again = &request{namespace, first}
		return
	}
	if _, ok := q.waiting[value]; ok {
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
	q.waiting[value] = place{in, in.PushBack(value)}
}

// Remove removes a waiting value. A running value is not stopped, but does not wait again afterwards.
func (q *Queue[T]) Remove(value T) {
	if r := q.running[value]; r != nil {
		r.again = nil
	}
	if p, ok := q.waiting[value]; ok {
		p.in.Remove(p.at)
		delete(q.waiting, value)
	}
}

// Pop returns the next value. It returns false if no value can run or the maximum number of values is running. The
// value runs until Done is called. A namespace that has used up its share keeps its turn.
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

// Done marks a value as no longer running.
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

// GiveBack gives the namespace of a running value the next turn, because the value could not be worked on in this one.
func (q *Queue[T]) GiveBack(value T) {
	r := q.running[value]
	if r == nil {
		return
	}
	if turn := slices.Index(q.turns, r.namespace); turn > 0 {
		q.turns = slices.Insert(slices.Delete(q.turns, turn, turn+1), 0, r.namespace)
	}
}

// maxIdle is the number of namespaces at which the ones without values are removed and lose their place.
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

// Running returns the number of running values.
func (q *Queue[T]) Running() int { return len(q.running) }

// Len returns the number of waiting values.
func (q *Queue[T]) Len() int { return len(q.waiting) }

// Clear removes all waiting values and returns them.
func (q *Queue[T]) Clear() []T {
	all := make([]T, 0, len(q.waiting))
	for value := range q.waiting {
		all = append(all, value)
	}
	q.turns, q.lines, q.waiting = nil, map[string]*line{}, map[T]place{}
	return all
}
