package resolver

import (
	"container/heap"
	"time"
)

// queue has the names that wait for their next look-up, the earliest first.
type queue []*name

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push and Pop are for package heap.
func (q *queue) Push(x any) {
	n := x.(*name)
	n.place = len(*q)
	*q = append(*q, n)
}

// Pop takes the last one away.
func (q *queue) Pop() any {
	last := len(*q) - 1
	n := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	n.place = -1
	return n
}

func (q *queue) remove(n *name) {
	if n.place >= 0 {
		heap.Remove(q, n.place)
	}
}

// schedule gives a name its next look-up.
func (r *Resolver) schedule(n *name, due time.Time) {
	r.queue.remove(n)
	n.due = due
	heap.Push(&r.queue, n)
}

// rouse makes Run look at the queue.
func (r *Resolver) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
