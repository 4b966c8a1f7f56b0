//go:build !linux

package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// datagramSize is more than the largest UDP datagram.
const datagramSize = 64 << 10

// upstreamConn is a socket that is connected to the endpoint of a session. The zero value is not open.
type upstreamConn struct{ conn *net.UDPConn }

func (u upstreamConn) isOpen() bool { return u.conn != nil }

func (u upstreamConn) close() { _ = u.conn.Close() }

func dial(address string) (upstreamConn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return upstreamConn{}, err
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	return upstreamConn{conn}, err
}

func isExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// destination is for systems that send many datagrams at once.
type destination struct{}

// Forwarder forwards the datagrams of one socket, one by one: on this system it is for development. Responses leave from
// the address that the system chooses.
type Forwarder struct {
	current  func() *Settings
	traffic  *Traffic
	socket   net.PacketConn
	closed   chan struct{}
	mu       sync.Mutex
	sessions sessions
	// responding are the loops that receive responses.
	responding sync.WaitGroup
}

// New returns a forwarder that takes over a socket. settings is called for each datagram; with nil settings the forwarder is
// refused.
func New(listening net.PacketConn, settings func() *Settings, traffic *Traffic) (*Forwarder, error) {
	if settings() == nil {
		return nil, fmt.Errorf("%s is not a UDP address", listening.LocalAddr())
	}
	return &Forwarder{current: settings, traffic: traffic, socket: listening, closed: make(chan struct{})}, nil
}

// Close ends the forwarder and all of its sessions, soon.
func (f *Forwarder) Close() error { return f.socket.Close() }

// Drain is Close on this system: no session goes on.
func (f *Forwarder) Drain() bool {
	_ = f.Close()
	return true
}

// now is the time since any fixed point.
func now() time.Duration { return time.Since(start) }

var start = time.Now()

// Closed is closed when Run has ended.
func (f *Forwarder) Closed() <-chan struct{} { return f.closed }

// Run forwards datagrams until Close.
func (f *Forwarder) Run() {
	defer close(f.closed)
	defer f.responding.Wait()
	buffer, swept := make([]byte, datagramSize), time.Now()
	for {
		_ = f.socket.SetReadDeadline(swept.Add(time.Second))
		n, from, err := f.socket.ReadFrom(buffer)
		switch {
		case errors.Is(err, net.ErrClosed):
			f.sweep(-1)
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			f.sweep(f.current().IdleTimeout)
			swept = time.Now()
		case err == nil:
			f.request(from.(*net.UDPAddr).AddrPort(), buffer[:n])
		}
	}
}

// sweep ends the sessions that are idle.
func (f *Forwarder) sweep(idle time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := f.sessions.expired(now(), idle); s != nil; s = f.sessions.expired(now(), idle) {
		f.remove(s)
	}
}

func (f *Forwarder) remove(s *session) {
	s.disconnect()
	f.sessions.remove(s)
	f.traffic.Sessions.Add(-1)
}

func (f *Forwarder) request(from netip.AddrPort, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	settings, traffic := f.current(), f.traffic
	s := f.sessions.find(key{client: from})
	if s == nil {
		if spare := f.sessions.evictable(now()); traffic.Sessions.Load() >= settings.MaxSessions {
			if spare == nil {
				traffic.lose(TooManySessions, 1)
				return
			}
			f.remove(spare)
		}
		s = f.sessions.add(key{client: from}, now())
		traffic.Sessions.Add(1)
		traffic.Opened.Add(1)
	}
	f.sessions.touch(s, now())
	if s.responses > 0 {
		f.sessions.verify(s)
	}
	if before := s.upstream; !settings.connected(s) {
		if err := settings.connect(s); err != nil {
			traffic.lose(NoEndpoint, 1)
			settings.NoEndpoint("no endpoint for a client", zap.Stringer("client", from), zap.Error(err))
			return
		}
		if s.upstream != before {
			f.responding.Go(func() { f.responses(s, s.upstream) })
		}
	}
	if _, err := s.upstream.conn.Write(data); err != nil {
		s.markRefused(now())
		traffic.lose(NotSendable, 1)
		return
	}
	s.countRequests(1, now())
	traffic.In.add(load{1, len(data)})
}

// responses forwards the datagrams of an endpoint, until the session has another one or none.
func (f *Forwarder) responses(s *session, from upstreamConn) {
	buffer := make([]byte, datagramSize)
	for {
		n, err := from.conn.Read(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		f.mu.Lock()
		switch {
		case s.upstream != from:
		case err != nil:
			s.markRefused(now())
		default:
			f.response(s, buffer[:n])
		}
		f.mu.Unlock()
	}
}

func (f *Forwarder) response(s *session, data []byte) {
	f.sessions.touch(s, now())
	if _, err := f.socket.WriteTo(data, net.UDPAddrFromAddrPort(s.key.client)); err != nil {
		f.traffic.lose(NotSendable, 1)
	} else {
		f.traffic.Out.add(load{1, len(data)})
	}
	if s.countResponses(1, now(), f.current().Responses) {
		f.remove(s)
	}
}
