package l4app

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	// queueBytes is how much may wait at the socket of a port, in each direction, where the system allows that much.
	queueBytes = 4 << 20
	// leastSweep and mostSweep are how often sessions are looked for that are idle.
	leastSweep = time.Second
	mostSweep  = 5 * time.Second
)

// forwarder passes the datagrams of one socket to endpoints, and their answers back. One goroutine does all of it: nothing
// is locked, and many sessions cost no more than a socket each. It waits in the scheduler of Go, as others do, on an epoll
// that has all of its sockets; what is ready is read and written without waiting.
type forwarder struct {
	port    *port
	traffic *traffic
	socket  int
	// tells says that the socket tells which address a datagram is for.
	tells bool
	// trains says that the kernel knows them.
	trains bool
	epoll  *os.File
	number int
	raw    syscall.RawConn
	poll   func(epoll uintptr) bool
	events [batchSize]unix.EpollEvent
	ready  int
	// failed is why it could not be found out what is ready.
	failed error
	// wanted is what others want of the forwarder, and stage what it knows of that.
	wanted atomic.Int32
	stage  stage
	// left is closed when the forwarder takes no new clients any more, and closed when the socket is.
	left, closed chan struct{}

	sessions sessions
	// bySocket finds the session of a line.
	bySocket map[int32]*session
	terms    *terms
	batch    *batch
	// asking are the sessions that have questions in the batch.
	asking []*session
	now    time.Duration
	swept  bool
}

// start is what times are since.
var start = time.Now()

// newForwarder takes the place of a socket, which it closes.
func newForwarder(p *port, listening net.PacketConn) (*forwarder, error) {
	f := &forwarder{port: p, traffic: &p.account.traffic, bySocket: map[int32]*session{}, terms: p.chain.Load().terms}
	f.left, f.closed = make(chan struct{}), make(chan struct{})
	if err := f.take(listening); err != nil {
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

// take makes the socket one that Go does not know: it would wake up somebody for each datagram.
func (f *forwarder) take(listening net.PacketConn) error {
	if wrapped, ok := listening.(interface{ Unwrap() net.PacketConn }); ok {
		listening = wrapped.Unwrap()
	}
	udp, ok := listening.(*net.UDPConn)
	if !ok || f.terms == nil {
		return fmt.Errorf("%s is no address of UDP", listening.LocalAddr())
	}
	defer udp.Close()
	raw, err := udp.SyscallConn()
	if err != nil {
		return err
	}
	address := udp.LocalAddr().(*net.UDPAddr)
	var refused error
	err = raw.Control(func(fd uintptr) {
		if f.socket, refused = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); refused != nil {
			return
		}
		// Less is what the system allows.
		_ = unix.SetsockoptInt(f.socket, unix.SOL_SOCKET, unix.SO_RCVBUF, queueBytes)
		_ = unix.SetsockoptInt(f.socket, unix.SOL_SOCKET, unix.SO_SNDBUF, queueBytes)
		_, unknown := unix.GetsockoptInt(f.socket, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		f.trains = unknown == nil
		takeTrains(f.socket)
		if address.IP.IsUnspecified() {
			f.tells = true
			refused = f.tell()
		}
	})
	if err = errors.Join(err, refused); err != nil && f.socket > 0 {
		_ = unix.Close(f.socket)
	}
	return err
}

// tell asks for the address that a datagram was sent to: a node has many, and an answer from another one is not taken.
func (f *forwarder) tell() error {
	domain, err := unix.GetsockoptInt(f.socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err == nil && domain == unix.AF_INET {
		err = unix.SetsockoptInt(f.socket, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	} else if err == nil {
		err = unix.SetsockoptInt(f.socket, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}
	return os.NewSyscallError("setsockopt", err)
}

func (f *forwarder) watch(socket int) error {
	err := unix.EpollCtl(f.number, unix.EPOLL_CTL_ADD, socket, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(socket)})
	return os.NewSyscallError("epoll_ctl", err)
}

// run passes datagrams on until Close, or until leave has an end.
func (f *forwarder) run() {
	defer f.close()
	for !f.over() {
		if err := f.move(); err != nil {
			// One client must not take all others down with it, nor the port. What is known of them may be damaged.
			f.port.account.tell(f.terms.log, broken, "passing datagrams on; all clients of the port are forgotten", zap.Error(err))
			f.forget()
			<-time.After(firstPause)
		}
	}
}

// move waits for something to do, and does it.
func (f *forwarder) move() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v at %s", r, debug.Stack())
		}
	}()
	f.failed = nil
	err = errors.Join(f.raw.Read(f.poll), f.failed)
	f.now = time.Since(start)
	switch {
	case err == nil:
		f.work()
	case errors.Is(err, os.ErrDeadlineExceeded):
		f.sweep()
		return nil
	}
	return err
}

// pollOnce finds the sockets that are ready. It returns false if there is none, so that it is waited for one.
func (f *forwarder) pollOnce(epoll uintptr) bool {
	n, err := unix.EpollWait(int(epoll), f.events[:], 0)
	f.ready = max(n, 0)
	if err != nil && !errors.Is(err, unix.EINTR) {
		f.failed = os.NewSyscallError("epoll_wait", err)
	}
	return f.ready > 0 || f.failed != nil
}

// work moves what is there to be moved.
func (f *forwarder) work() {
	f.batch, f.terms = takeBatch(), f.port.chain.Load().terms
	questions := false
	for i := range f.events[:f.ready] {
		if socket := f.events[i].Fd; socket == int32(f.socket) {
			questions = true
		} else if s := f.bySocket[socket]; s != nil {
			f.hear(s)
		}
	}
	f.flush()
	if questions {
		f.listen()
	}
	f.batch.free()
	f.batch = nil
	if !f.swept && len(f.sessions.byPeer) > 0 {
		f.sweep()
	}
}

// listen takes what clients have sent, and passes it on.
func (f *forwarder) listen() {
	b := f.batch
	n, err := receiveMessages(f.socket, b.questions[:])
	if err != nil {
		// Somebody else may have taken what was there, or it was damaged.
		return
	}
	for i := range n {
		f.question(i)
	}
	for i, s := range f.asking {
		f.pass(s)
		f.asking[i] = nil
	}
	f.asking = f.asking[:0]
	for i := range n {
		b.reset(i)
	}
}

// question puts one datagram of a client into the chain of its session.
func (f *forwarder) question(i int) {
	b := f.batch
	p := b.peer(i, b.take(i, &b.questions[i]))
	s := f.sessions.find(p)
	if s == nil {
		if s = f.admit(p, i); s == nil {
			return
		}
	}
	b.next[i] = -1
	if s.first < 0 {
		s.first = i
		f.asking = append(f.asking, s)
	} else {
		b.next[s.last] = i
	}
	s.last = i
}

// admit makes the session of a new client, unless there is no room for it.
func (f *forwarder) admit(p peer, i int) *session {
	traffic := f.traffic
	// Nothing can be sent to port 0.
	if p.client.Port() == 0 {
		traffic.lose(notSendable, f.batch.carried(i).datagrams)
		return nil
	}
	if f.stage == leaving {
		traffic.lose(portClosing, f.batch.carried(i).datagrams)
		return nil
	}
	if traffic.sessions.Load() >= f.terms.most && !f.makeRoom() {
		traffic.lose(tooManySessions, f.batch.carried(i).datagrams)
		return nil
	}
	traffic.sessions.Add(1)
	traffic.opened.Add(1)
	s := f.sessions.add(p, f.now)
	s.ahead.single, s.back.single = !f.trains, !f.trains
	s.back.name, s.back.nameLength = f.batch.names[i], f.batch.questions[i].Namelen
	if f.tells {
		s.back.controlLength = s.back.control.from(p.asked)
	}
	return s
}

// makeRoom ends a session that can be spared.
func (f *forwarder) makeRoom() bool {
	s := f.sessions.spare(f.now)
	if s == nil {
		return false
	}
	f.traffic.evicted.Add(1)
	f.end(s)
	return true
}

// pass sends the questions of a session to its endpoint.
func (f *forwarder) pass(s *session) {
	b, n := f.batch, 0
	for i := s.first; i >= 0; i = b.next[i] {
		b.gathered[n], b.gatheredSizes[n] = b.vectors[i], b.sizes[i]
		n++
	}
	f.sessions.touch(s, f.now)
	if s.answers > 0 {
		f.sessions.prove(s)
	}
	b.outgoing.add(b.gathered[:n], b.gatheredSizes[:n], &s.ahead)
	f.deliver(s)
	b.outgoing.count, s.first = 0, -1
}

// deliver waits for nothing: what an endpoint does not take is lost.
func (f *forwarder) deliver(s *session) {
	o, again, refusals := &f.batch.outgoing, false, 0
	for at := 0; at < o.count; {
		if !f.terms.settled(s) && !f.settle(s) {
			f.traffic.lose(noEndpointToAsk, o.total(at, o.count).datagrams)
			return
		}
		n, err := sendMessages(s.line.socket, o.messages[at:o.count])
		f.passed(s, o.total(at, at+n))
		at += n
		switch {
		case err == nil:
			again, refusals = false, 0
		case isUnreachable(err):
			f.refused(s, err)
			// Without a route to it, an endpoint that is asked again because there is no other one refuses each time.
			if refusals++; refusals > f.terms.tries {
				f.traffic.lose(noEndpointToAsk, o.total(at, o.count).datagrams)
				return
			}
		case isBusy(err):
			f.traffic.lose(endpointBusy, o.total(at, o.count).datagrams)
			return
		case o.isTrain(at):
			sent := o.singly(s.line.socket, at)
			f.passed(s, sent)
			f.traffic.lose(notSendable, o.loads[at].datagrams-sent.datagrams)
			at++
		case again:
			f.traffic.lose(notSendable, 1)
			at, again = at+1, false
		default:
			// It may be about a datagram before.
			again = true
		}
	}
}

// refused notes that the endpoint of a session has let a datagram be sent back, which had been passed on.
func (f *forwarder) refused(s *session, err error) {
	f.traffic.lose(endpointRefused, 1)
	f.port.account.tell(f.terms.log, noEndpoint, "an endpoint takes no datagrams",
		zap.String("endpoint", s.choice.Endpoint.Address()), zap.Stringer("client", s.peer.client), zap.Error(err))
	s.refuse(f.now)
}

// passed counts what went to an endpoint.
func (f *forwarder) passed(s *session, sent load) {
	if sent.datagrams > 0 {
		s.ask(sent.datagrams, f.now)
		f.traffic.in.add(sent)
	}
}

// settle finds an endpoint for a session. When sockets are short, others have to go.
func (f *forwarder) settle(s *session) bool {
	before := s.line
	err := f.terms.settle(s)
	if isShort(err) && f.makeRoom() {
		err = f.terms.settle(s)
	}
	if s.line != before {
		delete(f.bySocket, int32(before.socket))
		f.bySocket[int32(s.line.socket)] = s
		if err = f.watch(s.line.socket); err != nil {
			delete(f.bySocket, int32(s.line.socket))
			s.hangUp()
		}
	}
	if err != nil {
		f.port.account.tell(f.terms.log, noEndpoint, "no endpoint for a client",
			zap.String("backend", f.terms.backend.ID()), zap.Stringer("client", s.peer.client), zap.Error(err))
	}
	return err == nil
}

// hear takes what the endpoint of a session has sent.
func (f *forwarder) hear(s *session) {
	b := f.batch
	if b.answered == batchSize {
		f.flush()
	}
	n, err := receiveMessages(s.line.socket, b.answers[b.answered:])
	if err != nil {
		if isUnreachable(err) {
			f.refused(s, err)
		}
		return
	}
	from, datagrams := b.answered, 0
	b.answered += n
	for i := from; i < b.answered; i++ {
		b.take(i, &b.answers[i])
		datagrams += b.carried(i).datagrams
	}
	b.outgoing.add(b.vectors[from:b.answered], b.sizes[from:b.answered], &s.back)
	f.sessions.touch(s, f.now)
	if s.answer(datagrams, f.now, f.terms.responses) {
		f.end(s)
	}
}

// flush sends the answers to the clients.
func (f *forwarder) flush() {
	b, o, traffic := f.batch, &f.batch.outgoing, f.traffic
	for at := 0; at < o.count; {
		n, err := sendMessages(f.socket, o.messages[at:o.count])
		traffic.out.add(o.total(at, at+n))
		at += n
		switch {
		case err == nil:
		case isBusy(err):
			traffic.lose(clientBusy, o.total(at, o.count).datagrams)
			at = o.count
		case o.isTrain(at):
			sent := o.singly(f.socket, at)
			traffic.out.add(sent)
			traffic.lose(notSendable, o.loads[at].datagrams-sent.datagrams)
			at++
		default:
			traffic.lose(notSendable, 1)
			at++
		}
	}
	for i := range b.answered {
		b.reset(i)
	}
	b.answered, o.count = 0, 0
}

// end forgets a session.
func (f *forwarder) end(s *session) {
	delete(f.bySocket, int32(s.line.socket))
	s.hangUp()
	f.sessions.remove(s)
	f.traffic.sessions.Add(-1)
}

// sweep ends the sessions that are idle, and says when to look again.
func (f *forwarder) sweep() {
	idle := f.port.chain.Load().terms.idle
	if f.stage == leaving {
		idle = min(idle, lastWords)
	}
	for s := f.sessions.expired(f.now, idle); s != nil; s = f.sessions.expired(f.now, idle) {
		f.end(s)
	}
	f.swept = len(f.sessions.byPeer) > 0
	var next time.Time
	if f.swept {
		next = time.Now().Add(min(max(f.sessions.rest(f.now, idle), min(leastSweep, idle)), mostSweep))
	}
	f.wait(next)
}
