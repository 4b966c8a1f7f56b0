package l4app

import (
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/process/panics"
)

const (
	// minTick and maxTick limit the interval at which the connections of a port are checked, which is an eighth of the
	// idle timeout of the port. Because of maxTick, the removal of an endpoint is noticed soon even if the idle timeout
	// is long.
	minTick = 5 * time.Millisecond
	maxTick = 5 * time.Second
)

// watch closes the idle connections of a port. A connection whose endpoint was removed is closed earlier: once the
// endpoint has been removed, and the connection has been idle, for the drain time. A busy connection continues, because
// its endpoint may still work: an endpoint is also removed while its pod is running but not ready. All connections are
// checked periodically, which costs less than a timer for each connection. While there are no connections, no timer is
// running.
type watch struct {
	// idle is the time without traffic after which a connection is closed.
	idle time.Duration
	// drain returns the drain time: how long an idle connection may continue after its endpoint was removed.
	drain   func() time.Duration
	account *account

	mu      sync.Mutex
	links   map[*link]struct{}
	ticking bool
}

func (w *watch) tick() time.Duration { return min(max(w.idle/8, minTick), maxTick) }

// add starts watching a client's connection and its connection to an endpoint. The caller must call remove when the
// link has ended.
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

// checkAll checks all links, each of which is a client's connection with its connection to an endpoint. As long as
// there are links, it schedules the next check.
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

// count updates the port's metrics: it adds the number of bytes that the link has transferred since the last call. It
// returns true if there are any such bytes.
func (w *watch) count(l *link) bool {
	up, down := l.up.Load(), l.down.Load()
	w.account.up.Add(up - l.counted[0])
	w.account.down.Add(down - l.counted[1])
	moved := up != l.counted[0] || down != l.counted[1]
	l.counted = [2]uint64{up, down}
	return moved
}
