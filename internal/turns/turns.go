// Package turns queues work for namespaces that take turns, so that one with thousands of objects, or with work that hangs, does not
// hold up the first object of another. Package delayqueue is for work that is due at a time.
package turns

import (
	"container/list"
	"slices"
)

// Queue has values that wait for one kind of work, each once at most. Its methods are not safe for use by several goroutines at the
// same time: its owner has a lock.
type Queue[T comparable] struct {
	// most is how many values may be worked on at once, and share how many of one namespace.
	most, share int
	// running are worked on, and held is how many of them each namespace has.
	running map[T]*running
	held    map[string]int
	// turns has the namespaces in the order in which they come. One without values keeps its place: where there is work for one value
	// at a time only, it is not to lose it to those that always have some.
	turns   []string
	lines   map[string]*line
	waiting map[T]place
}

// running is a value that is worked on. It has the share of the namespace that it was in when that began.
type running struct {
	namespace string
	// again says where it is to wait after that; it is nil for one that is not.
	again *request
}

type request struct {
	namespace string
	first     bool
}

// line is what waits in one namespace: first comes before later.
type line struct{ first, later list.List }

// place is where a value waits.
type place struct {
	in *list.List
	at *list.Element
}

// New returns a queue without values. Of it, most may be worked on at once, and share of one namespace.
func New[T comparable](most, share int) *Queue[T] {
	return &Queue[T]{
		most: most, share: share, running: map[T]*running{}, held: map[string]int{}, lines: map[string]*line{}, waiting: map[T]place{},
	}
}

// Push adds a value at the end of the line of a namespace; first lets it go before all that was added without. One that waits stays
// where it is, and one that is worked on waits from Done on.
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

// Remove makes the queue forget a value that waits. It does not end work.
func (q *Queue[T]) Remove(value T) {
	if r := q.running[value]; r != nil {
		r.again = nil
	}
	if p, ok := q.waiting[value]; ok {
		p.in.Remove(p.at)
		delete(q.waiting, value)
	}
}

// Pop returns the value whose turn it is, or false when there is none, or enough are worked on. It is worked on until Done. A
// namespace that has its share keeps its turn.
func (q *Queue[T]) Pop() (value T, ok bool) {
	for turn := 0; len(q.running) < q.most && turn < len(q.turns); {
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

// Done says that a value is no longer worked on.
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

// GiveBack lets the namespace of a value that is worked on have the next turn, because nothing could be done in this one.
func (q *Queue[T]) GiveBack(value T) {
	r := q.running[value]
	if r == nil {
		return
	}
	if turn := slices.Index(q.turns, r.namespace); turn > 0 {
		q.turns = slices.Insert(slices.Delete(q.turns, turn, turn+1), 0, r.namespace)
	}
}

// mostIdle is how many namespaces without values keep their place.
const mostIdle = 4096

func (q *Queue[T]) forgetIdle() {
	if len(q.turns) < mostIdle {
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

// Running returns how many values are worked on.
func (q *Queue[T]) Running() int { return len(q.running) }

// Len returns how many values wait.
func (q *Queue[T]) Len() int { return len(q.waiting) }

// Clear makes the queue forget all values that wait, and returns them.
func (q *Queue[T]) Clear() []T {
	all := make([]T, 0, len(q.waiting))
	for value := range q.waiting {
		all = append(all, value)
	}
	q.turns, q.lines, q.waiting = nil, map[string]*line{}, map[T]place{}
	return all
}
