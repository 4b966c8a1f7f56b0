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

// hangUp lets go of the endpoint.
func (s *session) hangUp() {
	if !s.line.isOpen() {
		return
	}
	s.line.close()
	s.choice.End()
	s.line, s.choice, s.refused = line{}, balancer.Choice{}, false
	s.questions, s.answers = 0, 0
}

// refuse notes that nobody listens at the endpoint.
func (s *session) refuse(now time.Duration) {
	if !s.refused && s.line.isOpen() {
		s.refused = true
		s.choice.Observe(now-s.asked, true)
	}
}

// ask counts datagrams that went to the endpoint.
func (s *session) ask(n int, now time.Duration) {
	if s.questions == 0 {
		s.asked = now
	}
	s.questions += int64(n)
}

// answer counts datagrams that came from the endpoint, and returns whether these were all.
func (s *session) answer(n int, now time.Duration, responses int64) (complete bool) {
	if s.answers == 0 && s.questions > 0 {
		s.choice.Observe(now-s.asked, false)
	}
	s.answers += int64(n)
	return responses > 0 && s.answers >= s.questions*responses
}

// sessions are those of one socket. Times are since any fixed point.
type sessions struct {
	byPeer map[peer]*session
	// young has those that are not proven, and proven the others; the first is who was active the longest time ago.
	young, proven list.List
}

// find returns nil for a client that is not known.
func (ss *sessions) find(p peer) *session { return ss.byPeer[p] }

func (ss *sessions) add(p peer, now time.Duration) *session {
	s := &session{peer: p, active: now, first: -1}
	if ss.byPeer == nil {
		ss.byPeer = map[peer]*session{}
	}
	ss.byPeer[p] = s
	s.place = ss.young.PushBack(s)
	return s
}

func (ss *sessions) remove(s *session) {
	delete(ss.byPeer, s.peer)
	ss.of(s).Remove(s.place)
}

func (ss *sessions) of(s *session) *list.List {
	if s.proven {
		return &ss.proven
	}
	return &ss.young
}

// touch says that a session is active.
func (ss *sessions) touch(s *session, now time.Duration) {
	s.active = now
	ss.of(s).MoveToBack(s.place)
}

// prove says that the client of a session is no forged one.
func (ss *sessions) prove(s *session) {
	if s.proven {
		return
	}
	ss.young.Remove(s.place)
	s.proven = true
	s.place = ss.proven.PushBack(s)
}

// idlest returns who was active the longest time ago of those without datagrams that are being passed on, or nil. It looks at
// no more than those of one batch.
func idlest(of *list.List) *session {
	for e := of.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*session); s.first < 0 {
			return s
		}
	}
	return nil
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
func (ss *sessions) spare(now time.Duration) *session {
	young, proven := idlest(&ss.young), idlest(&ss.proven)
	switch {
	case young != nil && now-young.active >= youngTime:
		return young
	case proven != nil && now-proven.active >= quietTime:
		return proven
	}
	return young
}

// expired returns a session that has been idle for too long, or nil.
func (ss *sessions) expired(now, idle time.Duration) *session {
	for _, s := range []*session{oldest(&ss.young), oldest(&ss.proven)} {
		if s != nil && now-s.active >= idle {
			return s
		}
	}
	return nil
}

// rest is how long it takes until one has been idle for too long.
func (ss *sessions) rest(now, idle time.Duration) time.Duration {
	rest := idle
	for _, s := range []*session{oldest(&ss.young), oldest(&ss.proven)} {
		if s != nil {
			rest = min(rest, s.active+idle-now)
		}
	}
	return rest
}
