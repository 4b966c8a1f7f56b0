package issuance

import (
	"container/heap"
	"time"
)

// agenda has the hosts that wait for a time, the earliest first.
type agenda struct{ heap byTime }

// set puts a host on the agenda, or moves it.
func (a *agenda) set(h *host, due time.Time) {
	h.due = due
	if h.place >= 0 {
		heap.Fix(&a.heap, h.place)
		return
	}
	heap.Push(&a.heap, h)
}

func (a *agenda) drop(h *host) {
	if h.place >= 0 {
		heap.Remove(&a.heap, h.place)
	}
}

// pop returns a host whose time has come, or nil.
func (a *agenda) pop(now time.Time) *host {
	if len(a.heap) == 0 || a.heap[0].due.After(now) {
		return nil
	}
	return heap.Pop(&a.heap).(*host)
}

// next returns when the first is due, and no time when there is none.
func (a *agenda) next() (time.Time, bool) {
	if len(a.heap) == 0 {
		return time.Time{}, false
	}
	return a.heap[0].due, true
}

// byTime is the heap.
type byTime []*host

func (b byTime) Len() int           { return len(b) }
func (b byTime) Less(i, j int) bool { return b[i].due.Before(b[j].due) }
func (b byTime) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].place, b[j].place = i, j
}

// Push is for package heap.
func (b *byTime) Push(x any) {
	h := x.(*host)
	h.place = len(*b)
	*b = append(*b, h)
}

// Pop is for package heap.
func (b *byTime) Pop() any {
	all := *b
	h := all[len(all)-1]
	all[len(all)-1] = nil
	*b = all[:len(all)-1]
	h.place = -1
	return h
}
