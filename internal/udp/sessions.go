package udp

import (
	"container/list"
	"errors"
	"net/netip"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/loops"
	"github.com/k8singress/k8singress/internal/reach"
	"github.com/k8singress/k8singress/internal/split"
)

const (
	// unverifiedTime is for how long a new client may wait for its response before it makes room for another one.
	unverifiedTime = time.Second
	// quietTime is after how long without a datagram a verified client may make room for a new one.
	quietTime = 10 * time.Second
)

// key identifies a session: the client, and the local address that it sends to, which responses have to come from.
type key struct {
	client netip.AddrPort
	local  netip.Addr
}

// session is a client of a port, with its endpoint.
type session struct {
	key key
	// share is what its socket was taken from.
	share *budget.Share
	// backend is where choice comes from. There is a choice while upstream is open.
	backend *balancer.Backend
	// asked is the backend that an endpoint was looked for in; nil is none.
	asked    *balancer.Backend
	choice   balancer.Choice
	upstream upstreamConn
	// toEndpoint and toClient are how datagrams are sent to the endpoint and to the client.
	toEndpoint, toClient destination
	// refused says that the endpoint's system sent a datagram back.
	refused bool
	// requests and responses are how many datagrams went to the endpoint and came from it; waitingSince is when the first
	// request went.
	requests, responses int64
	waitingSince        time.Duration

	// began is when the session did, and received and sent are the bytes that came from its client, and those for it.
	began          time.Duration
	received, sent uint64
	// active is when a datagram went either way.
	active time.Duration
	// verified says that the client has sent a datagram after a response: its address is not forged.
	verified bool
	place    *list.Element
	// first and last are the requests of this session in a batch; first is -1 for none.
	first, last int
}

// disconnect gives up the endpoint.
func (s *session) disconnect() {
	if !s.upstream.isOpen() {
		return
	}
	s.upstream.close()
	s.choice.End()
	s.upstream, s.choice, s.refused = upstreamConn{}, balancer.Choice{}, false
	s.requests, s.responses = 0, 0
}

// markRefused notes that the endpoint refused a datagram.
func (s *session) markRefused(now time.Duration) {
	if !s.refused && s.upstream.isOpen() {
		s.refused = true
		s.choice.Observe(now-s.waitingSince, true)
	}
}

// countRequests counts datagrams that went to the endpoint.
func (s *session) countRequests(n int, now time.Duration) {
	if s.requests == 0 {
		s.waitingSince = now
	}
	s.requests += int64(n)
}

// countResponses counts datagrams that came from the endpoint. It returns whether the session is complete: perRequest
// responses have come for each request; zero is never.
func (s *session) countResponses(n int, now time.Duration, perRequest int64) (complete bool) {
	if s.responses == 0 && s.requests > 0 {
		s.choice.Observe(now-s.waitingSince, false)
	}
	s.responses += int64(n)
	return perRequest > 0 && s.responses >= s.requests*perRequest
}

// sessions are the sessions of one socket. Times are since any fixed point.
type sessions struct {
	byKey map[key]*session
	// unverified and verified list them, the one that has been idle for the longest time first.
	unverified, verified list.List
}

// find returns nil for a client that is not known.
func (ss *sessions) find(k key) *session { return ss.byKey[k] }

func (ss *sessions) add(k key, now time.Duration) *session {
	s := &session{key: k, began: now, active: now, first: -1}
	if ss.byKey == nil {
		ss.byKey = map[key]*session{}
	}
	ss.byKey[k] = s
	s.place = ss.unverified.PushBack(s)
	return s
}

func (ss *sessions) remove(s *session) {
	delete(ss.byKey, s.key)
	ss.of(s).Remove(s.place)
}

func (ss *sessions) of(s *session) *list.List {
	if s.verified {
		return &ss.verified
	}
	return &ss.unverified
}

// touch notes that a session is active.
func (ss *sessions) touch(s *session, now time.Duration) {
	s.active = now
	ss.of(s).MoveToBack(s.place)
}

// verify notes that the address of a session's client is not forged.
func (ss *sessions) verify(s *session) {
	if s.verified {
		return
	}
	ss.unverified.Remove(s.place)
	s.verified = true
	s.place = ss.verified.PushBack(s)
}

// idlest returns the session that has been idle for the longest time, or nil. It passes over sessions with requests in the
// batch, which are few.
func idlest(of *list.List) *session {
	for e := of.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*session); s.first < 0 {
			return s
		}
	}
	return nil
}

// oldest is like idlest, with those sessions included.
func oldest(of *list.List) *session {
	if e := of.Front(); e != nil {
		return e.Value.(*session)
	}
	return nil
}

// evictable returns the session that ends when there is no room for a new client, or nil. Addresses may be forged, and be
// many: a verified client stays as long as it is active.
func (ss *sessions) evictable(now time.Duration) *session {
	unverified, verified := idlest(&ss.unverified), idlest(&ss.verified)
	switch {
	case unverified != nil && now-unverified.active >= unverifiedTime:
		return unverified
	case verified != nil && now-verified.active >= quietTime:
		return verified
	}
	return unverified
}

// expired returns a session that has been idle for as long as idle, or nil.
func (ss *sessions) expired(now, idle time.Duration) *session {
	for _, s := range []*session{oldest(&ss.unverified), oldest(&ss.verified)} {
		if s != nil && now-s.active >= idle {
			return s
		}
	}
	return nil
}

// untilExpiry returns how long it takes until a session expires.
func (ss *sessions) untilExpiry(now, idle time.Duration) time.Duration {
	left := idle
	for _, s := range []*session{oldest(&ss.unverified), oldest(&ss.verified)} {
		if s != nil {
			left = min(left, s.active+idle-now)
		}
	}
	return left
}

// Settings are how the datagrams of a port are forwarded. They are immutable.
type Settings struct {
	// Backends share the sessions.
	Backends *split.Split[*balancer.Backend]
	// IdleTimeout is after how long without a datagram a session ends.
	IdleTimeout time.Duration
	// Responses is after how many responses to each request a session ends; zero is never.
	Responses int64
	// MaxSessions is how many sessions a port may have. Each one costs a socket, for which Share has to have room.
	MaxSessions int64
	Share       *budget.Share
	// Outgoing are the sockets towards endpoints, of all ports. A datagram from one of them goes in a circle, and is dropped.
	Outgoing *loops.Sockets
	// Guard decides which addresses are dialled.
	Guard *reach.Guard
	// Tries is how many endpoints are tried for a session.
	Tries int
	// NoEndpoint is called when an endpoint refuses datagrams or cannot be found, and Broken after a fault of the forwarder.
	NoEndpoint, Broken func(message string, fields ...zap.Field)
	// Ended is called when a session has ended, unless by a fault of the forwarder.
	Ended func(Ended)
}

// Ended is a session that has ended.
type Ended struct {
	// Client and Server are its two ends.
	Client, Server netip.AddrPort
	// Backend is the ID of its last backend, and Endpoint the address of its last endpoint; empty is none.
	Backend, Endpoint string
	// Served says that an endpoint has taken its datagrams, as far as that can be known: it has answered, or there was no answer to wait for
	// and its system refused none.
	Served bool
	// Received and Sent count the bytes that came from the client, and those for it that came from endpoints.
	Received, Sent uint64
	Began          time.Time
}

// connected says whether a session has an endpoint that its next datagrams may go to.
func (c *Settings) connected(s *session) bool {
	return s.upstream.isOpen() && c.has(s.backend) && !s.refused && s.choice.Endpoint.Listed()
}

func (c *Settings) has(b *balancer.Backend) bool {
	return slices.ContainsFunc(c.Backends.Shares, func(s split.Share[*balancer.Backend]) bool { return s.To == b })
}

// backendOf returns the backend of a session, which stays with the one that it has as long as that has endpoints.
func (c *Settings) backendOf(s *session) *balancer.Backend {
	if c.has(s.backend) && !s.backend.Empty() {
		return s.backend
	}
	return c.Backends.Next()
}

// connect finds an endpoint for a session that is not connected: another one than that which refused it, if there is one.
func (c *Settings) connect(s *session, to *balancer.Backend) error {
	var tried []*balancer.Endpoint
	if s.upstream.isOpen() && s.refused {
		tried = append(tried, s.choice.Endpoint)
	}
	err := balancer.ErrNoEndpoint
	for range c.Tries {
		choice, ok := to.Pick(balancer.Address(s.key.client), tried)
		if !ok {
			break
		}
		if s.upstream.isOpen() && s.choice.Endpoint == choice.Endpoint {
			// It may accept datagrams again by now.
			s.refused = false
			return nil
		}
		if slices.Contains(tried, choice.Endpoint) {
			break
		}
		tried = append(tried, choice.Endpoint)
		var upstream upstreamConn
		if upstream, err = c.dial(to.ID(), choice.Endpoint.Address()); err == nil {
			s.disconnect()
			s.backend, s.choice, s.upstream = to, choice, upstream
			choice.Begin()
			return nil
		}
		if isExhausted(err) {
			return err
		}
		if closed := (*reach.Refusal)(nil); !errors.As(err, &closed) {
			choice.Observe(0, true)
		}
	}
	return err
}
