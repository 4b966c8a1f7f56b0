package l4app

import (
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/process/panics"
)

const (
	// minTick and maxTick limit the interval between two checks of all connections of a port. The interval is an
	// eighth of the idle timeout, and short enough to notice that an endpoint is gone.
	minTick = 5 * time.Millisecond
	maxTick = 5 * time.Second
)

// watch ends the idle connections of a port. If the endpoint of a connection is gone, it ends the connection after a
// shorter idle time. A busy connection continues, since its endpoint may still work, for example if it is only not
// ready. One periodic check of all connections costs less than a timer for each. Without connections there is no timer.
type watch struct {
	// idle is the time without traffic after which a connection is ended.
	idle time.Duration
	// drain returns how long idle connections may last after their endpoint is gone.
	drain   func() time.Duration
	account *account

	mu      sync.Mutex
	links   map[*link]struct{}
	ticking bool
}

func (w *watch) tick() time.Duration { return min(max(w.idle/8, minTick), maxTick) }

// add watches a link until remove is called.
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

// checkAll checks all links, and schedules the next check while there are any.
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

// count adds the bytes that were moved since the last call to the account, and reports whether there were any.
func (w *watch) count(l *link) bool {
	up, down := l.up.Load(), l.down.Load()
	w.account.up.Add(up - l.counted[0])
	w.account.down.Add(down - l.counted[1])
	moved := up != l.counted[0] || down != l.counted[1]
	l.counted = [2]uint64{up, down}
	return moved
}
