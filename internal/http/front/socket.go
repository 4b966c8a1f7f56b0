package front

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/logs"
	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// socket is the listening socket of an address. It stays open while the address has at least one claim.
type socket struct {
	front *Front
	key   string
	net.Listener
	raw syscall.RawConn
	// alive is the keep-alive configuration that the kernel applies to each accepted connection.
	alive net.KeepAliveConfig

	// claims lists the claims of the address (its uses by configurations), oldest first. ending is true once the last
	// claim has been removed. Both are guarded by Front.mu.
	claims []*claim
	ending bool
	ended  chan struct{}
	// first is the claim that serves new connections. The accept loop starts when first is set, and closes the channel
	// accepted when it ends.
	first    atomic.Pointer[claim]
	accepted chan struct{}
}

// openSocket opens the socket for a claim in the same way as Caddy. It succeeds even if a server of the previous
// configuration, which has not stopped yet, listens on the same address.
func openSocket(ctx context.Context, f *Front, c *claim, config net.ListenConfig) (*socket, error) {
	s := &socket{
		front: f, key: c.address.String(), alive: config.KeepAliveConfig,
		ended: make(chan struct{}), accepted: make(chan struct{}),
	}
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

// add adds a claim for the address of the socket. The callers of add, remove and choose must hold Front.mu.
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

// choose lets the oldest claim serve new connections. A claim is the use of this socket by one configuration. Caddy
// closes the oldest claim only after the whole next configuration has started, so a configuration that fails to start
// never gets connections.
func (s *socket) choose() {
	attached := slices.IndexFunc(s.claims, func(c *claim) bool { return c.group != nil })
	if attached < 0 {
		return
	}
	if s.first.Swap(s.claims[attached]) == nil {
		panics.Loop("front/accept", func() {
			acceptAll(s, s.serve)
			close(s.accepted)
		})
	}
}

// serve passes a connection to s.first, the claim (use of this socket by one configuration) that gets new connections.
// The claim may be released at the same time. So serve first counts the connection with connSet.expect, which keeps the
// claim's connSet from ending, and then checks that s.first is unchanged. Otherwise it retries with the new claim.
func (s *socket) serve(conn net.Conn) {
	for {
		c := s.first.Load()
		c.conns.expect()
		if s.first.Load() == c {
			c.serve(conn)
			return
		}
		c.conns.unexpect()
	}
}

const (
	// Before a socket is closed, its accept queue is checked every queueInterval until it is empty, for at most
	// maxQueueWait.
	queueInterval, maxQueueWait = time.Millisecond, time.Second
)

// acceptAll calls the function take with each accepted connection, until the listener is closed.
func acceptAll(l net.Listener, take func(net.Conn)) {
	netconn.Accept(l, take, func(err error) {
		logs.Logger("k8singress").Warn("accepting a connection failed, retrying", zap.Stringer("address", l.Addr()),
			zap.Error(err))
	})
}

// end closes the socket once its accept queue is empty, since the kernel resets the connections in the queue of a
// closed socket.
func (s *socket) end() {
	for begin := time.Now(); s.raw != nil && waiting(s.raw) && time.Since(begin) < maxQueueWait; {
		<-time.After(queueInterval)
	}
	if err := s.Close(); err != nil {
		logs.Logger("k8singress").Warn("closing a listener failed", zap.String("address", s.key), zap.Error(err))
	}
	if s.first.Load() != nil {
		// The accept loop may still be passing the last connection to its claim, so wait until the loop has ended.
		<-s.accepted
	}
	s.front.mu.Lock()
	delete(s.front.sockets, s.key)
	s.front.mu.Unlock()
	close(s.ended)
}
