package front

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/logs"
	"github.com/k8singress/k8singress/internal/netaddr"
	"github.com/k8singress/k8singress/internal/panics"
)

// socket is what the kernel knows of an address: one that is there for as long as somebody has a claim to it.
type socket struct {
	front *Front
	key   string
	net.Listener
	raw syscall.RawConn
	// alive is what the kernel does for each connection that is accepted.
	alive net.KeepAliveConfig

	// claims are in the order in which they were made. ending says that there are none any more. Both belong to the lock of the front.
	claims []*claim
	ending bool
	ended  chan struct{}
	// first is the claim that counts.
	first atomic.Pointer[claim]
}

// openSocket opens the socket of a claim, as Caddy does: it may share the address for as long as a server of the configuration
// before listens there.
func openSocket(ctx context.Context, f *Front, c *claim, config net.ListenConfig) (*socket, error) {
	s := &socket{front: f, key: c.address.String(), alive: config.KeepAliveConfig, ended: make(chan struct{})}
	control := config.Control
	config.Control = func(network, address string, raw syscall.RawConn) error {
		s.raw = raw
		if control == nil {
			return nil
		}
		return control(network, address, raw)
	}
	opened, err := netaddr.OffFront(c.address).Listen(ctx, 0, config)
	if err != nil {
		return nil, err
	}
	s.Listener = opened.(net.Listener)
	s.add(c)
	return s, nil
}

// add is called with the lock of the front, as are remove and choose.
func (s *socket) add(c *claim) {
	c.socket = s
	s.claims = append(s.claims, c)
	s.choose()
}

func (s *socket) remove(c *claim) {
	s.claims = slices.DeleteFunc(s.claims, func(o *claim) bool { return o == c })
	if len(s.claims) == 0 {
		s.ending = true
		panics.Go("front/socket", s.end)
		return
	}
	s.choose()
}

// choose has the oldest claim count. Caddy closes it when it has started all of the next configuration, and a configuration that
// it refuses never counts.
func (s *socket) choose() {
	attached := slices.IndexFunc(s.claims, func(c *claim) bool { return c.group != nil })
	if attached < 0 {
		return
	}
	if s.first.Swap(s.claims[attached]) == nil {
		panics.Loop("front/accept", func() { acceptAll(s, func(conn net.Conn) { s.first.Load().serve(conn) }) })
	}
}

const (
	// leastPause and longestPause are how long nothing is accepted after an error, such as too many open files.
	leastPause, longestPause = 5 * time.Millisecond, time.Second
	// lookAgain is how often the queue of a socket that is to be closed is looked at, until it is empty, or for longestEnd.
	lookAgain, longestEnd = time.Millisecond, time.Second
)

// acceptAll hands out connections until the listener is closed.
func acceptAll(l net.Listener, take func(net.Conn)) {
	pause := leastPause
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			pause = leastPause
			take(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			logs.Logger("k8singress").Warn("accepting connections", zap.Stringer("address", l.Addr()), zap.Error(err))
			<-time.After(pause)
			pause = min(2*pause, longestPause)
		}
	}
}

// end closes the socket when its queue is empty: the kernel resets what is in it then.
func (s *socket) end() {
	for begin := time.Now(); s.raw != nil && waiting(s.raw) && time.Since(begin) < longestEnd; {
		<-time.After(lookAgain)
	}
	if err := s.Close(); err != nil {
		logs.Logger("k8singress").Warn("closing a listener", zap.String("address", s.key), zap.Error(err))
	}
	s.front.mu.Lock()
	delete(s.front.sockets, s.key)
	s.front.mu.Unlock()
	close(s.ended)
}
