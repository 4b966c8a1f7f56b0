package l4app

import (
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/panics"
)

const (
	// leastTick and mostTick are how often all connections of a port are looked at: eight times within the idle timeout, and
	// soon enough to see that an endpoint has gone.
	leastTick = 5 * time.Millisecond
	mostTick  = 5 * time.Second
)

// watch ends the connections of a port on which nothing moves, and does so sooner where the endpoint has been gone for long:
// one that is busy stays, since an endpoint that gets no new connections may be well, such as one that is not ready. One
// look from time to time at all of them costs less than timers of their own. It has no timer while there is none.
type watch struct {
	// idle is for how long nothing may move.
	idle time.Duration
	// drain returns for how long connections may last whose endpoint has gone.
	drain   func() time.Duration
	account *account

	mu      sync.Mutex
	links   map[*link]struct{}
	ticking bool
}

func (w *watch) tick() time.Duration { return min(max(w.idle/8, leastTick), mostTick) }

// add looks after a link until remove.
func (w *watch) add(l *link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.links == nil {
		w.links = map[*link]struct{}{}
	}
	l.moved = time.Now()
	w.links[l] = struct{}{}
	if !w.ticking {
		w.ticking = true
		panics.AfterFunc("l4app/watch", w.tick(), w.checkAll)
	}
}

func (w *watch) remove(l *link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.links, l)
	w.count(l)
}

// checkAll checks each of them, and goes on doing so for as long as there are any.
func (w *watch) checkAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.links) == 0 {
		w.ticking = false
		return
	}
	now, drain := time.Now(), w.drain()
	for l := range w.links {
		w.check(l, now, drain)
	}
	panics.AfterFunc("l4app/watch", w.tick(), w.checkAll)
}

func (w *watch) check(l *link, now time.Time, drain time.Duration) {
	switch {
	case w.count(l):
		l.moved = now
	case now.Sub(l.moved) >= w.idle:
		l.end(errIdle)
		return
	}
	switch {
	case l.endpoint.Listed():
		l.goneSince = time.Time{}
	case l.goneSince.IsZero():
		l.goneSince = now
	case now.Sub(l.goneSince) >= drain && now.Sub(l.moved) >= min(drain, w.idle):
		l.end(errGone)
	}
}

// count counts the bytes that have moved since the last time, and returns whether there are any.
func (w *watch) count(l *link) bool {
	up, down := l.up.Load(), l.down.Load()
	w.account.up.Add(up - l.counted[0])
	w.account.down.Add(down - l.counted[1])
	moved := up != l.counted[0] || down != l.counted[1]
	l.counted = [2]uint64{up, down}
	return moved
}
