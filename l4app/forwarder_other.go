//go:build !linux

package l4app

import (
	"errors"
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

// line is the way from a session to its endpoint. The zero value is none.
type line struct{ conn *net.UDPConn }

func (l line) isOpen() bool { return l.conn != nil }

func (l line) close() { _ = l.conn.Close() }

func openLine(address string) (line, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return line{}, err
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	return line{conn}, err
}

func isShort(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }

// way is for systems that send many datagrams at once.
type way struct{}

// forwarder passes the datagrams of one socket to endpoints, and their answers back, one by one: here it is for those who
// develop. Answers leave from the address that the system likes best.
type forwarder struct {
	port     *port
	traffic  *traffic
	socket   net.PacketConn
	mu       sync.Mutex
	sessions sessions
}

func newForwarder(p *port, listening net.PacketConn) (*forwarder, error) {
	if p.chain.Load().terms == nil {
		return nil, errors.New("this is no address of UDP")
	}
	return &forwarder{port: p, traffic: &p.account.traffic, socket: listening}, nil
}

// Close ends the forwarder and all of its sessions, soon.
func (f *forwarder) Close() error { return f.socket.Close() }

// leave is Close: here, nobody goes on.
func (f *forwarder) leave() bool {
	_ = f.Close()
	return true
}

// now is the time since any fixed point.
func now() time.Duration { return time.Since(start) }

var start = time.Now()

func (f *forwarder) run() {
	buffer, swept := make([]byte, datagramSize), time.Now()
	for {
		_ = f.socket.SetReadDeadline(swept.Add(time.Second))
		n, from, err := f.socket.ReadFrom(buffer)
		switch {
		case errors.Is(err, net.ErrClosed):
			f.sweep(-1)
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			f.sweep(f.port.chain.Load().terms.idle)
			swept = time.Now()
		case err == nil:
			f.question(from.(*net.UDPAddr).AddrPort(), buffer[:n])
		}
	}
}

// sweep ends the sessions that are idle.
func (f *forwarder) sweep(idle time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := f.sessions.expired(now(), idle); s != nil; s = f.sessions.expired(now(), idle) {
		f.end(s)
	}
}

func (f *forwarder) end(s *session) {
	s.hangUp()
	f.sessions.remove(s)
	f.traffic.sessions.Add(-1)
}

func (f *forwarder) question(from netip.AddrPort, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	terms, traffic := f.port.chain.Load().terms, f.traffic
	s := f.sessions.find(peer{client: from})
	if s == nil {
		if spare := f.sessions.spare(now()); traffic.sessions.Load() >= terms.most {
			if spare == nil {
				traffic.lose(tooManySessions, 1)
				return
			}
			f.end(spare)
		}
		s = f.sessions.add(peer{client: from}, now())
		traffic.sessions.Add(1)
		traffic.opened.Add(1)
	}
	f.sessions.touch(s, now())
	if s.answers > 0 {
		f.sessions.prove(s)
	}
	if before := s.line; !terms.settled(s) {
		if err := terms.settle(s); err != nil {
			traffic.lose(noEndpointToAsk, 1)
			f.port.account.tell(terms.log, noEndpoint, "no endpoint for a client", zap.Stringer("client", from), zap.Error(err))
			return
		}
		if s.line != before {
			f.port.serving.Go(func() { f.answers(s, s.line) })
		}
	}
	if _, err := s.line.conn.Write(data); err != nil {
		s.refuse(now())
		traffic.lose(notSendable, 1)
		return
	}
	s.ask(1, now())
	traffic.in.add(load{1, len(data)})
}

// answers passes on what comes from an endpoint, until the session has another one or none.
func (f *forwarder) answers(s *session, from line) {
	buffer := make([]byte, datagramSize)
	for {
		n, err := from.conn.Read(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		f.mu.Lock()
		switch {
		case s.line != from:
		case err != nil:
			s.refuse(now())
		default:
			f.answer(s, buffer[:n])
		}
		f.mu.Unlock()
	}
}

func (f *forwarder) answer(s *session, data []byte) {
	f.sessions.touch(s, now())
	if _, err := f.socket.WriteTo(data, net.UDPAddrFromAddrPort(s.peer.client)); err != nil {
		f.port.chain.Load().log.Debug("answering a client", zap.Error(err))
		f.traffic.lose(notSendable, 1)
	} else {
		f.traffic.out.add(load{1, len(data)})
	}
	if s.answer(1, now(), f.port.chain.Load().terms.responses) {
		f.end(s)
	}
}
