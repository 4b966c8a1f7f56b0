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
	// unverifiedTime is how long the session of a new client is protected from eviction after its last datagram.
	unverifiedTime = time.Second
	// quietTime is how long the session of a verified client is protected from eviction after its last datagram.
	quietTime = 10 * time.Second
)

// key identifies a session by the address of the client and the local address to which the client sends its datagrams.
// Responses must be sent from this local address.
type key struct {
	client netip.AddrPort
	local  netip.Addr
}

// session is the state for one client of a UDP port, with the endpoint that was chosen for it.
type session struct {
	key key
	// share is the budget from which the file descriptor of the session was taken.
	share *budget.Share
	// choice is the current endpoint, and backend is the backend of this endpoint. Both fields are valid only while
	// upstream, the socket to the endpoint, is open.
	backend *balancer.Backend
	// tried is the backend from which an endpoint was last requested for the session, or nil. It is set even if there
	// was no endpoint.
	tried    *balancer.Backend
	choice   balancer.Choice
	upstream upstreamConn
	// toEndpoint is the destination of the client's datagrams, and toClient is the destination of the endpoint's
	// datagrams.
	toEndpoint, toClient destination
	// refused is true if an ICMP message has reported that the current endpoint cannot be reached.
	refused bool
	// requests is the number of datagrams sent to the current endpoint, and responses is the number of datagrams
	// received from it. waitingSince is the time of the first request to this endpoint.
	requests, responses int64
	waitingSince        time.Duration

	// began is the start time of the session, as the duration since the package variable start. received is the number
	// of bytes from the client, and sent is the number of bytes from endpoints.
	began          time.Duration
	received, sent uint64
	// active is the time of the last datagram in either direction, as the duration since the package variable start.
	active time.Duration
	// verified is true if the client has sent another datagram after a response was sent to it. Its address is then
	// probably not forged.
	verified bool
	place    *list.Element
	// first and last are the indexes of the first and the last message that the session's client has sent in the
	// current batch. If there is no such message, first is -1.
	first, last int
}

// disconnect closes the socket to the endpoint, if it is open.
func (s *session) disconnect() {
	if !s.upstream.isOpen() {
		return
	}
	s.upstream.close()
	s.choice.End()
	s.upstream, s.choice, s.refused = upstreamConn{}, balancer.Choice{}, false
	s.requests, s.responses = 0, 0
}

// markRefused records that the endpoint of the session failed, because it cannot be reached.
func (s *session) markRefused(now time.Duration) {
	if !s.refused && s.upstream.isOpen() {
		s.refused = true
		s.choice.Observe(now-s.waitingSince, true)
	}
}

// countRequests adds n to the number of datagrams that were sent to the endpoint.
func (s *session) countRequests(n int, now time.Duration) {
	if s.requests == 0 {
		s.waitingSince = now
	}
	s.requests += int64(n)
}

// countResponses adds n to the number of datagrams from the endpoint. It reports whether the session is complete:
// perRequest responses have arrived for each request. If perRequest is zero, it always returns false.
func (s *session) countResponses(n int, now time.Duration, perRequest int64) (complete bool) {
	if s.responses == 0 && s.requests > 0 {
		s.choice.Observe(now-s.waitingSince, false)
	}
	s.responses += int64(n)
	return perRequest > 0 && s.responses >= s.requests*perRequest
}

// sessions holds the sessions of one port. All times are durations since the package variable start.
type sessions struct {
	byKey map[key]*session
	// unverified lists the sessions of new clients, and verified lists the sessions of clients whose address is not
	// forged. The session that has been idle for the longest time comes first in each list.
	unverified, verified list.List
}

// find returns the session with the given key, or nil.
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

// touch records that a session has sent or received a datagram now.
func (ss *sessions) touch(s *session, now time.Duration) {
	s.active = now
	ss.of(s).MoveToBack(s.place)
}

// verify records that the address of the session's client is not forged.
func (ss *sessions) verify(s *session) {
	if s.verified {
		return
	}
	ss.unverified.Remove(s.place)
	s.verified = true
	s.place = ss.verified.PushBack(s)
}

// idlest returns the session in a list that has been idle for the longest time, or nil. It skips sessions whose clients
// have sent datagrams in the current batch.
func idlest(of *list.List) *session {
	for e := of.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*session); s.first < 0 {
			return s
		}
	}
	return nil
}

// oldest is like idlest, but does not skip sessions whose clients have sent datagrams in the current batch.
func oldest(of *list.List) *session {
	if e := of.Front(); e != nil {
		return e.Value.(*session)
	}
	return nil
}

// evictable returns the session to end if there are too many sessions, or nil if none may be ended. An attacker can
// forge many client addresses, so the session of a verified client is never ended while it is active.
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

// expired returns a session that has received and sent no datagram for at least the duration idle, or nil if there is
// no such session.
func (ss *sessions) expired(now, idle time.Duration) *session {
	for _, s := range []*session{oldest(&ss.unverified), oldest(&ss.verified)} {
		if s != nil && now-s.active >= idle {
			return s
		}
	}
	return nil
}

// untilExpiry returns the time until the first of the sessions expires, which is when it has received and sent no
// datagram for the duration idle. If there are no sessions, untilExpiry returns idle.
func (ss *sessions) untilExpiry(now, idle time.Duration) time.Duration {
	left := idle
	for _, s := range []*session{oldest(&ss.unverified), oldest(&ss.verified)} {
		if s != nil {
			left = min(left, s.active+idle-now)
		}
	}
	return left
}

// Settings defines how the datagrams of a port are forwarded. It is immutable.
type Settings struct {
	// Backends are the backends to which the sessions are distributed by weight.
	Backends *split.Split[*balancer.Backend]
	// IdleTimeout is the time without datagrams after which a session ends.
	IdleTimeout time.Duration
	// Responses is the expected number of responses per request. A session ends when all expected responses have
	// arrived. Zero means that the number is unknown, so that a session only ends when it is idle.
	Responses int64
	// MaxSessions is the maximum number of sessions of a port. Each session also takes one file descriptor from the
	// budget Share.
	MaxSessions int64
	Share       *budget.Share
	// Outgoing holds the local addresses of all our sockets to endpoints. A datagram that comes from one of these
	// addresses is part of a loop and is dropped.
	Outgoing *loops.Sockets
	// Guard decides to which addresses datagrams may be sent.
	Guard *reach.Guard
	// Tries is the maximum number of endpoints that are tried when a session must be connected to an endpoint.
	Tries int
	// NoEndpoint logs that no endpoint is available, or that an endpoint cannot be reached. Broken logs an internal
	// error.
	NoEndpoint, Broken func(message string, fields ...zap.Field)
	// Ended is called for each session that has ended, except after an internal error.
	Ended func(Ended)
}

// Ended describes a session that has ended.
type Ended struct {
	// Client is the address of the client, and Server is the local address to which it has sent datagrams.
	Client, Server netip.AddrPort
	// Backend is the ID of the last backend, and Endpoint is the address of the last endpoint. They are empty if there
	// was no backend or endpoint.
	Backend, Endpoint string
	// Served is true if the endpoint has probably received the datagrams: it has sent a response, or, if no responses
	// are expected, it has not rejected any datagram.
	Served bool
	// Received is the number of bytes from the client, and Sent is the number of bytes from endpoints.
	Received, Sent uint64
	Began          time.Time
}

// connected reports whether the next datagrams of a session may be sent to its current endpoint.
func (c *Settings) connected(s *session) bool {
	return s.upstream.isOpen() && c.has(s.backend) && !s.refused && s.choice.Endpoint.Listed()
}

func (c *Settings) has(b *balancer.Backend) bool {
	return slices.ContainsFunc(c.Backends.Shares, func(s split.Share[*balancer.Backend]) bool { return s.To == b })
}

// backendOf returns the backend for a session: the backend that the session already uses, if it still belongs to the
// port and has endpoints, or else another backend of the port.
func (c *Settings) backendOf(s *session) *balancer.Backend {
	if c.has(s.backend) && !s.backend.Empty() {
		return s.backend
	}
	return c.Backends.Next()
}

// connect connects a session to an endpoint of the backend given by the parameter to. If the session's current endpoint
// cannot be reached, another endpoint is preferred.
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
			// Pick has returned the current endpoint again, because the backend has no other. Try it again: it may be
			// reachable now.
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
