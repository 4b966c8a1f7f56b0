package issuance

import (
	"slices"
	"time"

	"github.com/caddyserver/certmagic"
)

// queue has the hosts that wait for one kind of work. Namespaces take turns, so that one with thousands of hosts does not
// hold up the first host of another.
type queue struct {
	// most is how many may be worked on at once, and running how many are.
	most, running int
	// share is how many of those one namespace may have, and held how many each has.
	share   int
	held    map[string]int
	turns   []string
	waiting map[string]*line
	length  int
}

// line is what waits in one namespace: first, what has never been tried.
type line struct{ first, later []*host }

func newQueue(most, share int) *queue {
	return &queue{most: most, share: share, held: map[string]int{}, waiting: map[string]*line{}}
}

func (q *queue) push(h *host, first bool) {
	if h.queues[q] {
		return
	}
	h.queues[q] = true
	q.length++
	l := q.waiting[h.origin.Namespace]
	if l == nil {
		l = &line{}
		q.waiting[h.origin.Namespace] = l
		q.turns = append(q.turns, h.origin.Namespace)
	}
	if first {
		l.first = append(l.first, h)
	} else {
		l.later = append(l.later, h)
	}
}

// drop makes the queue forget a host. It stays in its line, which passes over it.
func (q *queue) drop(h *host) {
	if h.queues[q] {
		delete(h.queues, q)
		q.length--
	}
}

// pop returns the next host, or nil when there is none, or enough are worked on. It is worked on until done. A namespace that
// has its share keeps its place.
func (q *queue) pop() *host {
	for turn := 0; q.running < q.most && turn < len(q.turns); {
		namespace := q.turns[turn]
		if q.held[namespace] >= q.share {
			turn++
			continue
		}
		q.turns = slices.Delete(q.turns, turn, turn+1)
		h := q.waiting[namespace].pop(q)
		if h == nil {
			delete(q.waiting, namespace)
			continue
		}
		q.turns = append(q.turns, namespace)
		q.drop(h)
		q.running++
		q.held[namespace]++
		h.holds = namespace
		return h
	}
	return nil
}

// done says that a host is no longer worked on.
func (q *queue) done(h *host) {
	q.running--
	if q.held[h.holds]--; q.held[h.holds] == 0 {
		delete(q.held, h.holds)
	}
}

func (l *line) pop(q *queue) *host {
	for _, part := range []*[]*host{&l.first, &l.later} {
		for len(*part) > 0 {
			h := (*part)[0]
			(*part)[0] = nil
			*part = (*part)[1:]
			if h.queues[q] {
				return h
			}
		}
	}
	return nil
}

// clear makes the queue forget all hosts, and returns them.
func (q *queue) clear() []*host {
	var all []*host
	for _, l := range q.waiting {
		for _, h := range slices.Concat(l.first, l.later) {
			if h.queues[q] {
				q.drop(h)
				all = append(all, h)
			}
		}
	}
	q.turns, q.waiting = nil, map[string]*line{}
	return all
}

// pace keeps to the number of orders that certmagic allows one certificate authority in a short time. A host that had to
// wait there would keep another host from its turn.
type pace struct{ begun []time.Time }

// ready returns whether another order may begin, and if not, how long that takes.
func (p *pace) ready(now time.Time) (time.Duration, bool) {
	p.begun = slices.DeleteFunc(p.begun, func(t time.Time) bool { return now.Sub(t) >= certmagic.RateLimitEventsWindow })
	if certmagic.RateLimitEvents <= 0 || len(p.begun) < certmagic.RateLimitEvents {
		return 0, true
	}
	return certmagic.RateLimitEventsWindow - now.Sub(p.begun[0]), false
}

func (p *pace) began(now time.Time) { p.begun = append(p.begun, now) }

// refund takes back the last beginning, because no issuer was asked.
func (p *pace) refund() {
	if len(p.begun) > 0 {
		p.begun = p.begun[:len(p.begun)-1]
	}
}
