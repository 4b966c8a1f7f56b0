package udp

import (
	"time"

	"golang.org/x/sys/unix"
)

// phase is the phase of a forwarder's shutdown. Zero means that the forwarder is not shutting down.
type phase int32

const (
	// draining means that new clients are rejected, and that the forwarder stops when all of its sessions have ended.
	draining phase = iota + 1
	closing
)

// drainIdle is the maximum idle timeout of a session while its forwarder is draining. It is five seconds because most
// DNS clients wait this long for a response.
const drainIdle = 5 * time.Second

// finished switches to the phase of the shutdown that another goroutine has requested. It returns true if the loop of
// Run must end.
func (f *Forwarder) finished() bool {
	if f.phase = phase(f.requested.Load()); f.phase == draining {
		select {
		case <-f.drains:
		default:
			f.sweep()
			if len(f.sessions.byKey) > 0 {
				close(f.drains)
			}
		}
	}
	return f.phase == closing || f.phase == draining && len(f.sessions.byKey) == 0
}

// Close stops a running forwarder and ends all of its sessions. When Close returns, the socket is closed, so that the
// address can be used again. The sessions end soon afterwards.
func (f *Forwarder) Close() error {
	f.enter(closing)
	<-f.closed
	return nil
}

// Drain makes the forwarder reject new clients, while active sessions continue. It returns true if there are no active
// sessions; the socket of the port is then already closed.
func (f *Forwarder) Drain() bool {
	f.enter(draining)
	select {
	case <-f.closed:
		return true
	case <-f.drains:
		return false
	}
}

// Closed returns a channel that is closed after the socket of the port was closed.
func (f *Forwarder) Closed() <-chan struct{} { return f.closed }

// The method enter asks the loop of Run to switch to the phase p of the shutdown. It is safe for concurrent use.
func (f *Forwarder) enter(p phase) {
	f.requested.Store(int32(p))
	f.wake()
}

// wake interrupts the loop of Run while it waits for a socket. This can only fail if the loop has ended, so the error
// is ignored.
func (f *Forwarder) wake() { _ = f.epoll.SetReadDeadline(time.Unix(1, 0)) }

// wait sets how long the loop of Run waits for a socket to be ready: until the given time, or without a limit if the
// time is zero. If another goroutine has requested a new phase in the meantime, the loop does not wait.
func (f *Forwarder) wait(until time.Time) {
	_ = f.epoll.SetReadDeadline(until)
	if phase(f.requested.Load()) != f.phase {
		f.wake()
	}
}

func (f *Forwarder) close() {
	_ = unix.Close(f.socket)
	close(f.closed)
	for _, s := range f.sessions.byKey {
		f.reportEnd(s)
	}
	f.reset()
	_ = f.epoll.Close()
}

// reset ends all sessions. It may be called after an internal error, so it does not use the linked lists of sessions,
// which may then be inconsistent.
func (f *Forwarder) reset() {
	for _, s := range f.sessions.byKey {
		s.disconnect()
		s.share.Give(1)
	}
	f.traffic.Sessions.Add(-int64(len(f.sessions.byKey)))
	f.sessions, f.queued, f.batch = sessions{}, nil, nil
	clear(f.bySocket)
}
