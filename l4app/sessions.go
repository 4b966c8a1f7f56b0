package l4app

import (
	"container/list"
	"net/netip"
	"time"

	"github.com/k8singress/k8singress/internal/balancer"
)

const (
	// youngTime is for how long a new client is given the chance to be answered, where there are too many.
	youngTime = time.Second
	// quietTime is after how long a client that is known to be one may be forgotten for a new one.
	quietTime = 10 * time.Second
)

// peer is who a session is for: a client, and the address that it asked, which is the one to answer from.
type peer struct {
	client netip.AddrPort
	asked  netip.Addr
}

// session is what is remembered of a client of a UDP port.
type session struct {
	peer peer
	// backend is where choice comes from. There is a choice while there is a line.
	backend *balancer.Backend
	choice  balancer.Choice
	line    line
	// ahead and back are how datagrams go to the endpoint, and to the client.
	ahead, back way
	// refused says that the endpoint told us that nobody listens there.
	refused bool
	// questions and answers are how many datagrams went to the endpoint and came from it; asked is when the first one
	// without an answer went.
	questions, answers int64
	asked              time.Duration

	// active is when a datagram went either way.
	active time.Duration
	// proven says that the client has sent something after an answer: its address is no forged one.
	proven bool
	place  *list.Element
	// first and last are what of a batch is for this session.
	first, last int
}

// sessions are those of one socket. Times are since any fixed point.
type sessions struct {
	byPeer map[peer]*session
	// young has those that are not proven, and proven the others; the first is who was active the longest time ago.
	young, proven list.List
}

// find returns nil for a client that is not known.
func (all *sessions) find(p peer) *session { return all.byPeer[p] }

func (all *sessions) add(p peer, now time.Duration) *session {
	s := &session{peer: p, active: now, first: -1}
	if all.byPeer == nil {
		all.byPeer = map[peer]*session{}
	}
	all.byPeer[p] = s
	s.place = all.young.PushBack(s)
	return s
}

func (all *sessions) remove(s *session) {
	delete(all.byPeer, s.peer)
	all.of(s).Remove(s.place)
}

func (all *sessions) of(s *session) *list.List {
	if s.proven {
		return &all.proven
	}
	return &all.young
}

// touch says that a session is active.
func (all *sessions) touch(s *session, now time.Duration) {
	s.active = now
	all.of(s).MoveToBack(s.place)
}

// prove says that the client of a session is no forged one.
func (all *sessions) prove(s *session) {
	if s.proven {
		return
	}
	all.young.Remove(s.place)
	s.proven = true
	s.place = all.proven.PushBack(s)
}

// oldest returns who was active the longest time ago, or nil.
func oldest(of *list.List) *session {
	if e := of.Front(); e != nil {
		return e.Value.(*session)
	}
	return nil
}

// spare returns who is to go when there is no room for a new client. Addresses may be forged, and be many: a client that
// is known to be one stays as long as it has something to say. Without one to go, it returns nil.
func (all *sessions) spare(now time.Duration) *session {
	young, proven := oldest(&all.young), oldest(&all.proven)
	switch {
	case young != nil && now-young.active >= youngTime:
		return young
	case proven != nil && now-proven.active >= quietTime:
		return proven
	}
	return young
}

// expired returns a session that has been idle for too long, or nil.
func (all *sessions) expired(now, idle time.Duration) *session {
	for _, s := range []*session{oldest(&all.young), oldest(&all.proven)} {
		if s != nil && now-s.active >= idle {
			return s
		}
	}
	return nil
}

// rest is how long it takes until one has been idle for too long.
func (all *sessions) rest(now, idle time.Duration) time.Duration {
	rest := idle
	for _, s := range []*session{oldest(&all.young), oldest(&all.proven)} {
		if s != nil {
			rest = min(rest, s.active+idle-now)
		}
	}
	return rest
}

// any returns one of them, or nil.
func (all *sessions) any() *session { return all.expired(0, -1<<62) }
