// Package udp forwards datagrams between clients and endpoints. Clients send datagrams to a UDP port, and the responses
// of the endpoint are sent back to the client. Each client of a port has a session with its own socket, which is
// connected to an endpoint.
package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/k8singress/k8singress/internal/process/panics"
)

const (
	// queueBytes is the requested size in bytes of a port's send buffer and of its receive buffer.
	queueBytes = 4 << 20
	// minSweep and maxSweep are the minimum and maximum interval between two searches for idle sessions.
	minSweep = time.Second
	maxSweep = 5 * time.Second
	// faultPause is how long a forwarder waits after an internal error, before it continues.
	faultPause = 5 * time.Millisecond
)

// Forwarder forwards the datagrams of one listening socket. The goroutine that calls Run does all the work, so no locks
// are needed, and a session needs no goroutine. All sockets are registered with one epoll instance. Go's netpoller
// waits until the epoll instance reports ready sockets; the goroutine then reads from and writes to them without
// blocking.
type Forwarder struct {
	// current returns the latest settings of the port. settings holds the result of current for the datagrams that are
	// being forwarded now.
	current  func() *Settings
	settings *Settings
	traffic  *Traffic
	socket   int
	// address is the local address of the port's socket.
	address netip.AddrPort
	// packetInfo is true if received messages contain the local address to which they were sent.
	packetInfo bool
	// gso is true if the kernel supports generic segmentation offload (UDP_SEGMENT).
	gso    bool
	epoll  *os.File
	number int
	raw    syscall.RawConn
	poll   func(epoll uintptr) bool
	events [batchSize]unix.EpollEvent
	ready  int
	// failed is the error of the last epoll_wait call, or nil.
	failed error
	// requested is the phase that another goroutine has requested with the method enter. phase is the phase that the
	// loop of Run has entered.
	requested atomic.Int32
	phase     phase
	// drains is closed when the forwarder has started draining, if there are still sessions. closed is closed after the
	// port's socket was closed.
	drains, closed chan struct{}

	sessions sessions
	// bySocket maps the file descriptor of each socket that is connected to an endpoint to the session that uses the
	// socket.
	bySocket map[int32]*session
	batch    *batch
	// queued holds the sessions whose clients have sent datagrams in the current batch.
	queued []*session
	now    time.Duration
	swept  bool
}

// start is the reference for points in time in this package: they are stored as the time.Duration since start.
var start = time.Now()

// New returns a forwarder for the socket listening. It duplicates the socket and closes listening. The forwarder calls
// settings before it forwards a batch of datagrams. If settings returns nil when New calls it, New returns an error.
func New(listening net.PacketConn, settings func() *Settings, traffic *Traffic) (*Forwarder, error) {
	f := &Forwarder{
		current: settings, settings: settings(), traffic: traffic, bySocket: map[int32]*session{},
		drains: make(chan struct{}), closed: make(chan struct{}),
	}
	if err := f.adopt(listening); err != nil {
		return nil, err
	}
	var err error
	if f.number, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		_ = unix.Close(f.socket)
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	err = errors.Join(unix.SetNonblock(f.number, true), f.watch(f.socket))
	f.epoll = os.NewFile(uintptr(f.number), "epoll")
	if err == nil {
		f.raw, err = f.epoll.SyscallConn()
	}
	if err != nil {
		f.close()
		return nil, err
	}
	f.poll = f.pollOnce
	return f, nil
}

// adopt duplicates the listening socket and closes the original. Go's netpoller does not watch the duplicate: it would
// wake up a goroutine for each datagram.
func (f *Forwarder) adopt(listening net.PacketConn) error {
	if wrapped, ok := listening.(interface{ Unwrap() net.PacketConn }); ok {
		listening = wrapped.Unwrap()
	}
	conn, ok := listening.(*net.UDPConn)
	if !ok || f.settings == nil {
		return fmt.Errorf("%s is not a UDP address", listening.LocalAddr())
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	f.address = conn.LocalAddr().(*net.UDPAddr).AddrPort()
	var refused error
	err = raw.Control(func(fd uintptr) {
		if f.socket, refused = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); refused != nil {
			return
		}
		// Ignore errors: the system may limit buffers to a smaller size.
		_ = unix.SetsockoptInt(f.socket, unix.SOL_SOCKET, unix.SO_RCVBUF, queueBytes)
		_ = unix.SetsockoptInt(f.socket, unix.SOL_SOCKET, unix.SO_SNDBUF, queueBytes)
		_, unknown := unix.GetsockoptInt(f.socket, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		f.gso = unknown == nil
		enableGRO(f.socket)
		if f.address.Addr().IsUnspecified() {
			f.packetInfo = true
			refused = f.enablePacketInfo()
		}
	})
	if err = errors.Join(err, refused); err != nil && f.socket > 0 {
		_ = unix.Close(f.socket)
	}
	return err
}

// enablePacketInfo makes the kernel report the local address to which each datagram was sent. A node has several
// addresses, and clients ignore responses that come from another address.
func (f *Forwarder) enablePacketInfo() error {
	domain, err := unix.GetsockoptInt(f.socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err == nil && domain == unix.AF_INET {
		err = unix.SetsockoptInt(f.socket, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	} else if err == nil {
		err = unix.SetsockoptInt(f.socket, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}
	return os.NewSyscallError("setsockopt", err)
}

func (f *Forwarder) watch(socket int) error {
	err := unix.EpollCtl(f.number, unix.EPOLL_CTL_ADD, socket,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(socket)})
	return os.NewSyscallError("epoll_ctl", err)
}

// Run forwards datagrams until Close is called. After a call of Drain, it returns when the last session has ended.
func (f *Forwarder) Run() {
	defer f.close()
	for !f.finished() {
		var err error
		if caught := panics.Try(func() { err = f.step() }); caught != nil {
			err = fmt.Errorf("panic: %w at %s", caught, caught.Stack)
		}
		if err != nil {
			// End all sessions, because their state may be inconsistent, but keep the port open for new sessions.
			f.settings.Broken("forwarding datagrams failed; all sessions of the port have ended", zap.Error(err))
			f.reset()
			<-time.After(faultPause)
		}
	}
}

// step waits until sockets are ready, and forwards their datagrams.
func (f *Forwarder) step() error {
	f.failed = nil
	err := errors.Join(f.raw.Read(f.poll), f.failed)
	f.now = time.Since(start)
	switch {
	case err == nil:
		f.process()
	case errors.Is(err, os.ErrDeadlineExceeded):
		f.sweep()
		return nil
	}
	return err
}

// pollOnce finds the sockets that are ready, without blocking. It returns true if there are any, or if an error
// occurred. If it returns false, Go's netpoller waits for a ready socket and then calls pollOnce again.
func (f *Forwarder) pollOnce(epoll uintptr) bool {
	n, err := unix.EpollWait(int(epoll), f.events[:], 0)
	f.ready = max(n, 0)
	if err != nil && !errors.Is(err, unix.EINTR) {
		f.failed = os.NewSyscallError("epoll_wait", err)
	}
	return f.ready > 0 || f.failed != nil
}

// process forwards the datagrams of the ready sockets.
func (f *Forwarder) process() {
	f.batch, f.settings = takeBatch(), f.current()
	requests := false
	for i := range f.events[:f.ready] {
		if socket := f.events[i].Fd; socket == int32(f.socket) {
			requests = true
		} else if s := f.bySocket[socket]; s != nil {
			f.receiveResponses(s)
		}
	}
	f.sendResponses()
	if requests {
		f.receiveRequests()
	}
	f.batch.free()
	f.batch = nil
	if !f.swept && len(f.sessions.byKey) > 0 {
		f.sweep()
	}
}

// receiveRequests receives the datagrams of clients and forwards them.
func (f *Forwarder) receiveRequests() {
	b := f.batch
	n, err := receiveMessages(f.socket, b.requests[:])
	if err != nil {
		// Ignore the error: another process has received the datagram, or the datagram was corrupt.
		return
	}
	for i := range n {
		f.queue(i)
	}
	for i, s := range f.queued {
		f.forward(s)
		f.queued[i] = nil
	}
	f.queued = f.queued[:0]
	for i := range n {
		b.reset(i)
	}
}

// The method queue adds the received message with the index i to the session of its client. If the client is new, it
// creates the session first.
func (f *Forwarder) queue(i int) {
	b := f.batch
	k := b.key(i, b.parse(i, &b.requests[i]))
	s := f.sessions.find(k)
	if s == nil {
		if s = f.admit(k, i); s == nil {
			return
		}
	}
	b.next[i] = -1
	if s.first < 0 {
		s.first = i
		f.queued = append(f.queued, s)
	} else {
		b.next[s.last] = i
	}
	s.last = i
}

// admit creates a session for a new client. If the client must be rejected, it returns nil and counts the client's
// datagram as lost.
func (f *Forwarder) admit(k key, i int) *session {
	traffic := f.traffic
	// Reject datagrams from port 0, because a response to this port cannot be sent.
	if k.client.Port() == 0 {
		traffic.lose(NotSendable, f.batch.carried(i).datagrams)
		return nil
	}
	if f.phase == draining {
		traffic.lose(PortClosing, f.batch.carried(i).datagrams)
		return nil
	}
	if f.settings.Outgoing.Has(k.client) {
		traffic.lose(Loop, f.batch.carried(i).datagrams)
		return nil
	}
	if traffic.Sessions.Load() >= f.settings.MaxSessions && !f.evict() {
		traffic.lose(TooManySessions, f.batch.carried(i).datagrams)
		return nil
	}
	share := f.settings.Share
	if !share.Take(1) && !(f.evict() && share.Take(1)) {
		traffic.lose(NoDescriptors, f.batch.carried(i).datagrams)
		return nil
	}
	traffic.Sessions.Add(1)
	traffic.Opened.Add(1)
	s := f.sessions.add(k, f.now)
	s.share = share
	s.toEndpoint.noGSO, s.toClient.noGSO = !f.gso, !f.gso
	s.toClient.name, s.toClient.nameLength = f.batch.names[i], f.batch.requests[i].Namelen
	if f.packetInfo {
		s.toClient.controlLength = s.toClient.control.from(k.local)
	}
	return s
}

// evict ends an existing session to make room for a new one. It returns false if there is no session that may be ended.
func (f *Forwarder) evict() bool {
	s := f.sessions.evictable(f.now)
	if s == nil {
		return false
	}
	f.traffic.Evicted.Add(1)
	f.remove(s)
	return true
}

// forward sends the datagrams that the client of a session has sent in the current batch to the session's endpoint.
func (f *Forwarder) forward(s *session) {
	b, n := f.batch, 0
	for i := s.first; i >= 0; i = b.next[i] {
		b.gathered[n], b.gatheredSizes[n] = b.vectors[i], b.sizes[i]
		s.received += uint64(b.carried(i).bytes)
		n++
	}
	f.sessions.touch(s, f.now)
	if s.responses > 0 {
		f.sessions.verify(s)
	}
	b.outgoing.add(b.gathered[:n], b.gatheredSizes[:n], &s.toEndpoint)
	f.send(s)
	b.outgoing.count, s.first = 0, -1
}

// send sends the outgoing messages to the endpoint of a session. It does not block: datagrams that do not fit into the
// send buffer are dropped.
func (f *Forwarder) send(s *session) {
	o, again, refusals := &f.batch.outgoing, false, 0
	for at := 0; at < o.count; {
		if !f.settings.connected(s) && !f.connect(s) {
			f.traffic.lose(NoEndpoint, o.total(at, o.count).datagrams)
			return
		}
		n, err := sendMessages(s.upstream.socket, o.messages[at:o.count])
		f.countSent(s, o.total(at, at+n))
		at += n
		switch {
		case err == nil:
			again, refusals = false, 0
		case isUnreachable(err):
			f.onRefused(s, err)
			// Limit the number of attempts: if there is only one endpoint and no route to it, every attempt fails.
			if refusals++; refusals > f.settings.Tries {
				f.traffic.lose(NoEndpoint, o.total(at, o.count).datagrams)
				return
			}
		case isBusy(err):
			f.traffic.lose(EndpointBusy, o.total(at, o.count).datagrams)
			return
		case o.isGSO(at):
			sent := o.sendSegments(s.upstream.socket, at)
			f.countSent(s, sent)
			f.traffic.lose(NotSendable, o.loads[at].datagrams-sent.datagrams)
			at++
		case again:
			f.traffic.lose(NotSendable, 1)
			at, again = at+1, false
		default:
			// The error may have been caused by an earlier datagram, so try once more.
			again = true
		}
	}
}

// onRefused is called when an ICMP message reports that a datagram did not reach the endpoint of a session.
func (f *Forwarder) onRefused(s *session, err error) {
	f.traffic.lose(EndpointRefused, 1)
	f.settings.NoEndpoint("an endpoint rejects datagrams",
		zap.String("endpoint", s.choice.Endpoint.Address()), zap.Stringer("client", s.key.client), zap.Error(err))
	s.markRefused(f.now)
}

// countSent updates the metrics and the session after datagrams were sent to the endpoint.
func (f *Forwarder) countSent(s *session, sent load) {
	if sent.datagrams > 0 {
		s.countRequests(sent.datagrams, f.now)
		f.traffic.In.add(sent)
	}
}

// connect connects a session to an endpoint. If no more sockets can be opened, it ends another session and tries again.
// It returns false if the session could not be connected.
func (f *Forwarder) connect(s *session) bool {
	before, to := s.upstream, f.settings.backendOf(s)
	s.tried = to
	err := f.settings.connect(s, to)
	if isExhausted(err) && f.evict() {
		err = f.settings.connect(s, to)
	}
	if s.upstream != before {
		delete(f.bySocket, int32(before.socket))
		f.bySocket[int32(s.upstream.socket)] = s
		if err = f.watch(s.upstream.socket); err != nil {
			delete(f.bySocket, int32(s.upstream.socket))
			s.disconnect()
		}
	}
	if err != nil {
		f.settings.NoEndpoint("no endpoint is available for a client",
			zap.String("backend", to.ID()), zap.Stringer("client", s.key.client), zap.Error(err))
	}
	return err == nil
}

// remove ends a session.
func (f *Forwarder) remove(s *session) {
	f.reportEnd(s)
	delete(f.bySocket, int32(s.upstream.socket))
	s.disconnect()
	s.share.Give(1)
	f.sessions.remove(s)
	f.traffic.Sessions.Add(-1)
}

// reportEnd calls the callback Settings.Ended for a session that has ended.
func (f *Forwarder) reportEnd(s *session) {
	e := Ended{Client: s.key.client, Server: f.address, Received: s.received, Sent: s.sent, Began: start.Add(s.began)}
	if s.key.local.IsValid() {
		e.Server = netip.AddrPortFrom(s.key.local, f.address.Port())
	}
	if s.tried != nil {
		e.Backend = s.tried.ID()
	}
	if s.upstream.isOpen() {
		e.Endpoint = s.choice.Endpoint.Address()
		e.Served = s.sent > 0 || !s.refused && f.settings.Responses == 0
	}
	f.settings.Ended(e)
}

// sweep ends all sessions that have been idle for too long. It also sets the time of the next call of sweep.
func (f *Forwarder) sweep() {
	idle := f.current().IdleTimeout
	if f.phase == draining {
		idle = min(idle, drainIdle)
	}
	for s := f.sessions.expired(f.now, idle); s != nil; s = f.sessions.expired(f.now, idle) {
		f.remove(s)
	}
	f.swept = len(f.sessions.byKey) > 0
	var next time.Time
	if f.swept {
		next = time.Now().Add(min(max(f.sessions.untilExpiry(f.now, idle), min(minSweep, idle)), maxSweep))
	}
	f.wait(next)
}
