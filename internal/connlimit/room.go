package connlimit

import (
	"math/rand/v2"
	"time"

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/panics"
)

// rest is how long a connection has to be silent before it ends for others while there is room: a request may be on its
// way.
const rest = 100 * time.Millisecond

// compared is how many connections are compared to choose the one that ends. A new connection must not cost more
// because there are many.
const compared = 128

// candidate is a connection that may end.
type candidate struct {
	place  *Place
	state  State
	silent time.Duration
	// count is the number of connections that its client has; 0 if the client is exempt.
	count int64
}

// before reports whether a ends before b: a busy connection ends last, and otherwise the client with more connections
// loses one.
func (a *candidate) before(b *candidate) bool {
	switch {
	case b.place == nil:
		return true
	case (a.state == Busy) != (b.state == Busy):
		return b.state == Busy
	case a.count != b.count:
		return a.count > b.count
	case a.state != b.state:
		return a.state > b.state
	}
	return a.silent > b.silent
}

// makeRoom ends a connection that is idle or stalled, and has been silent for some time. It is one of the client with
// the share, or of a client with at least as many connections. If there is none, makeRoom asks the client of a busy
// connection to leave, and returns false.
func (l *Limiter) makeRoom(share *budget.Share, silent time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.choose(share, silent)
	if c.place == nil {
		return false
	}
	c.place.asked = true
	panics.Go("connlimit/make room", c.place.occupant.End)
	if c.state == Busy {
		return false
	}
	c.place.ending = true
	l.ending++
	l.ended.Add(1)
	return true
}

// choose returns the connection to end, of some that are spread evenly over all. The caller holds the lock.
func (l *Limiter) choose(share *budget.Share, silent time.Duration) (chosen candidate) {
	all := len(l.places)
	if all == 0 {
		return chosen
	}
	least := int64(0)
	if share != nil {
		least = share.Used()
	}
	step := max(all/compared, 1)
	for i, n := rand.IntN(all), min(all, compared); n > 0; n-- {
		c, ok := l.places[i].candidate()
		ok = ok && (c.count >= least || c.place.share == share) && (c.state == Busy || c.silent >= silent)
		if ok && c.before(&chosen) {
			chosen = c
		}
		if i += step; i >= all {
			i -= all
		}
	}
	return chosen
}

// candidate returns the connection of a place, if it may end. The caller holds the lock of the limiter.
func (p *Place) candidate() (c candidate, ok bool) {
	if p.occupant == nil || p.ending {
		return c, false
	}
	c.place = p
	if p.share != nil {
		c.count = p.share.Used()
	}
	c.state, c.silent = p.occupant.State()
	return c, c.state != Busy || !p.asked
}
