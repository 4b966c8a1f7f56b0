package udp

import (
	"time"

	"golang.org/x/sys/unix"
)

// phase is how far the end of a forwarder has come. The zero value is a forwarder that takes new clients.
type phase int32

const (
	// draining takes no new clients, and ends when the sessions of all others are idle.
	draining phase = iota + 1
	closing
)

// drainIdle is the idle timeout of sessions while a forwarder drains: most DNS clients wait as long for a response.
const drainIdle = 5 * time.Second

// finished brings the phase up to date, and says whether the loop is to end.
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

// Close ends a running forwarder, and soon after that all of its sessions. The address is free when it returns.
func (f *Forwarder) Close() error {
	f.enter(closing)
	<-f.closed
	return nil
}

// Drain lets active sessions go on, and takes no new clients. It returns true when there are no sessions; the address is
// free then.
func (f *Forwarder) Drain() bool {
	f.enter(draining)
	select {
	case <-f.closed:
		return true
	case <-f.drains:
		return false
	}
}

// Closed is closed when the socket is.
func (f *Forwarder) Closed() <-chan struct{} { return f.closed }

// enter requests a phase. It may be called on any goroutine.
func (f *Forwarder) enter(p phase) {
	f.requested.Store(int32(p))
	f.wake()
}

// wake ends the wait of the loop. It fails only when the loop has ended.
func (f *Forwarder) wake() { _ = f.epoll.SetReadDeadline(time.Unix(1, 0)) }

// wait sets until when the loop waits for a socket to be ready; zero is without end. A phase that was requested meanwhile
// ends the wait.
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
		f.note(s)
	}
	f.reset()
	_ = f.epoll.Close()
}

// reset ends all sessions. It does not rely on the lists of them, which may be damaged.
func (f *Forwarder) reset() {
	for _, s := range f.sessions.byKey {
		s.disconnect()
		s.share.Give(1)
	}
	f.traffic.Sessions.Add(-int64(len(f.sessions.byKey)))
	f.sessions, f.queued, f.batch = sessions{}, nil, nil
	clear(f.bySocket)
}
