package udp

import (
	"container/list"
	"errors"
	"net/netip"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/loops"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/reach"
	"github.com/k8singress/k8singress/internal/upstream/split"
)

const (
	// unverifiedTime is how long a new client may wait for its response before its session can be evicted.
	unverifiedTime = time.Second
	// quietTime is the idle time after which the session of a verified client can be evicted.
	quietTime = 10 * time.Second
)

// key identifies a session: the client, and the local address to which it sends. Responses must come from that address.
type key struct {
	client netip.AddrPort
	local  netip.Addr
}

// session is one client of a port, with its endpoint.
type session struct {
	key key
	// share is the budget from which the session's socket was taken.
	share *budget.Share
	// backend is the backend of choice. choice is valid while upstream is open.
	backend *balancer.Backend
	// tried is the backend in which an endpoint was last searched, or nil.
	tried    *balancer.Backend
	choice   balancer.Choice
	upstream upstreamConn
	// toEndpoint and toClient are the destinations of requests and responses.
	toEndpoint, toClient destination
	// refused means that an ICMP message rejected a datagram to the endpoint.
	refused bool
	// requests and responses are the numbers of datagrams to and from the endpoint. waitingSince is the time of the
	// first request.
	requests, responses int64
	waitingSince        time.Duration

	// began is the start of the session. received and sent are the numbers of bytes from the client and from endpoints.
	began          time.Duration
	received, sent uint64
	// active is the time of the last datagram in either direction.
	active time.Duration
	// verified means that the client has sent a datagram after a response, so its address is not forged.
	verified bool
	place    *list.Element
	// first and last are the indexes of the session's first and last request in the batch. first is -1 if there are
	// none.
	first, last int
}

// disconnect closes the socket to the endpoint.
func (s *session) disconnect() {
	if !s.upstream.isOpen() {
		return
	}
	s.upstream.close()
	s.choice.End()
	s.upstream, s.choice, s.refused = upstreamConn{}, balancer.Choice{}, false
	s.requests, s.responses = 0, 0
}

// markRefused records that the endpoint rejected a datagram.
func (s *session) markRefused(now time.Duration) {
	if !s.refused && s.upstream.isOpen() {
		s.refused = true
		s.choice.Observe(now-s.waitingSince, true)
	}
}

// countRequests counts datagrams that were sent to the endpoint.
func (s *session) countRequests(n int, now time.Duration) {
	if s.requests == 0 {
		s.waitingSince = now
	}
	s.requests += int64(n)
}

// countResponses counts datagrams from the endpoint. It reports whether the session is complete, which means that
// perRequest responses have arrived for each request. If perRequest is zero, a session is never complete.
func (s *session) countResponses(n int, now time.Duration, perRequest int64) (complete bool) {
	if s.responses == 0 && s.requests > 0 {
		s.choice.Observe(now-s.waitingSince, false)
	}
	s.responses += int64(n)
	return perRequest > 0 && s.responses >= s.requests*perRequest
}

// sessions holds the sessions of one socket. Times are relative to any fixed point.
type sessions struct {
	byKey map[key]*session
	// unverified and verified list the sessions, with the longest idle session first.
	unverified, verified list.List
}

// find returns the session with a key, or nil.
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

// touch records that a session is active.
func (ss *sessions) touch(s *session, now time.Duration) {
	s.active = now
	ss.of(s).MoveToBack(s.place)
}

// verify records that the address of a session's client is not forged.
func (ss *sessions) verify(s *session) {
	if s.verified {
		return
	}
	ss.unverified.Remove(s.place)
	s.verified = true
	s.place = ss.verified.PushBack(s)
}

// idlest returns the session that has been idle for the longest time, or nil. It skips the few sessions with requests
// in the batch.
func idlest(of *list.List) *session {
	for e := of.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*session); s.first < 0 {
			return s
		}
	}
	return nil
}

// oldest is like idlest, but includes sessions with requests in the batch.
func oldest(of *list.List) *session {
	if e := of.Front(); e != nil {
		return e.Value.(*session)
	}
	return nil
}

// evictable returns the session to end if there is no room for a new client, or nil. Client addresses may be forged in
// large numbers, so a verified client is kept as long as it is active.
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

// expired returns a session that has been idle for at least the given time, or nil.
func (ss *sessions) expired(now, idle time.Duration) *session {
	for _, s := range []*session{oldest(&ss.unverified), oldest(&ss.verified)} {
		if s != nil && now-s.active >= idle {
			return s
		}
	}
	return nil
}

// untilExpiry returns the time until the next session expires.
func (ss *sessions) untilExpiry(now, idle time.Duration) time.Duration {
	left := idle
	for _, s := range []*session{oldest(&ss.unverified), oldest(&ss.verified)} {
		if s != nil {
			left = min(left, s.active+idle-now)
		}
	}
	return left
}

// Settings configure how the datagrams of a port are forwarded. They are immutable.
type Settings struct {
	// Backends are the backends among which sessions are divided.
	Backends *split.Split[*balancer.Backend]
	// IdleTimeout is the time without datagrams after which a session ends.
	IdleTimeout time.Duration
	// Responses is the number of responses per request after which a session ends. Zero means no limit.
	Responses int64
	// MaxSessions is the maximum number of sessions of a port. Each session also takes one file descriptor from Share.
	MaxSessions int64
	Share       *budget.Share
	// Outgoing holds the addresses of all our sockets to endpoints. A datagram from one of them is part of a loop and
	// is dropped.
	Outgoing *loops.Sockets
	// Guard decides to which addresses sockets may be connected.
	Guard *reach.Guard
	// Tries is the maximum number of endpoints to try for a session.
	Tries int
	// NoEndpoint is called when an endpoint rejects datagrams or cannot be found. Broken is called after an internal
	// error.
	NoEndpoint, Broken func(message string, fields ...zap.Field)
	// Ended is called after a session has ended, except after an internal error.
	Ended func(Ended)
}

// Ended describes a session that has ended.
type Ended struct {
	// Client and Server are the remote and the local address.
	Client, Server netip.AddrPort
	// Backend is the ID of the last backend, and Endpoint the address of the last endpoint. They are empty if there was
	// none.
	Backend, Endpoint string
	// Served means that an endpoint accepted the datagrams, as far as this can be known. Either it sent a response, or
	// no responses were expected and no datagram was rejected.
	Served bool
	// Received and Sent are the numbers of bytes from the client and from endpoints.
	Received, Sent uint64
	Began          time.Time
}

// connected reports whether a session has an endpoint to which its next datagrams may be sent.
func (c *Settings) connected(s *session) bool {
	return s.upstream.isOpen() && c.has(s.backend) && !s.refused && s.choice.Endpoint.Listed()
}

func (c *Settings) has(b *balancer.Backend) bool {
	return slices.ContainsFunc(c.Backends.Shares, func(s split.Share[*balancer.Backend]) bool { return s.To == b })
}

// backendOf returns the backend of a session. A session keeps its backend as long as the backend has endpoints.
func (c *Settings) backendOf(s *session) *balancer.Backend {
	if c.has(s.backend) && !s.backend.Empty() {
		return s.backend
	}
	return c.Backends.Next()
}

// connect finds an endpoint for a session that is not connected. If an endpoint has rejected datagrams, it prefers
// another one.
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
			// It is the only endpoint, and may accept datagrams again.
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
