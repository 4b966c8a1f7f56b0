package connlimit

import (
	"math/rand/v2"
	"time"

	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// rest is the minimum idle time of a connection that is ended for a new connection while the limit is not yet reached.
// If a connection has been idle for a shorter time, its next request may already be on its way.
const rest = 100 * time.Millisecond

// compared is the maximum number of connections that are compared to choose the connection to end. It keeps the cost of
// a new connection independent of the number of connections.
const compared = 128

// candidate is a connection that may be ended.
type candidate struct {
	place  *Place
	state  State
	silent time.Duration
	// count is the number of connections of the same client, or 0 for a client that is exempt or has no address.
	count int64
}

// a.before(b) reports whether connection a should be ended before connection b. Busy connections are ended last. Among
// the other connections, a connection of the client with more connections is ended first.
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

// makeRoom ends one connection that is idle or stalled and has had no activity for at least the duration silent. If
// share is not nil, the connection belongs to the client with this share, or to a client with at least as many
// connections. makeRoom returns true if there is such a connection. Otherwise it asks the client of a busy connection
// to close it, and returns false.
func (l *Limiter) makeRoom(share *budget.Share, silent time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.choose(share, silent)
	if c.place == nil {
		return false
	}
	c.place.endCalled = true
	panics.Go("connlimit/make room", c.place.occupant.End)
	if c.state == Busy {
		return false
	}
	c.place.ending = true
	l.ending++
	l.ended.Add(1)
	return true
}

// choose compares a sample of the connections, which is spread evenly over all connections, and returns the connection
// to end. share and silent have the same meaning as in makeRoom. If no connection may be ended, chosen.place is nil.
// The caller must hold the limiter's lock.
func (l *Limiter) choose(share *budget.Share, silent time.Duration) (chosen candidate) {
	all := len(l.places)
	if all == 0 {
		return chosen
	}
	minimum := int64(0)
	if share != nil {
		minimum = share.Used()
	}
	step := max(all/compared, 1)
	for i, n := rand.IntN(all), min(all, compared); n > 0; n-- {
		c, ok := l.places[i].candidate()
		ok = ok && (c.count >= minimum || c.place.share == share) && (c.state == Busy || c.silent >= silent)
		if ok && c.before(&chosen) {
			chosen = c
		}
		if i += step; i >= all {
			i -= all
		}
	}
	return chosen
}

// p.candidate() returns the values by which the connection is compared with others. ok is false if the connection must
// not be ended. The caller must hold the limiter's lock.
func (p *Place) candidate() (c candidate, ok bool) {
	if p.occupant == nil || p.ending {
		return c, false
	}
	c.place = p
	if p.share != nil {
		c.count = p.share.Used()
	}
	c.state, c.silent = p.occupant.State()
	return c, c.state != Busy || !p.endCalled
}
