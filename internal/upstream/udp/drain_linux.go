package udp

import (
	"time"

	"golang.org/x/sys/unix"
)

// phase is the phase of a forwarder's shutdown. Zero means that the forwarder accepts new clients.
type phase int32

const (
	// draining means that new clients are rejected and the forwarder ends when all its sessions have ended.
	draining phase = iota + 1
	closing
)

// drainIdle is the idle timeout of sessions while a forwarder drains. Most DNS clients wait this long for a response.
const drainIdle = 5 * time.Second

// finished updates the phase, and reports whether the loop must end.
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

// Close stops a running forwarder and ends all its sessions. When Close returns, the address is free; the sessions end
// soon afterwards.
func (f *Forwarder) Close() error {
	f.enter(closing)
	<-f.closed
	return nil
}

// Drain rejects new clients and lets active sessions continue. It returns true if there are no sessions; the address is
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

// Closed returns a channel that is closed when the socket is closed.
func (f *Forwarder) Closed() <-chan struct{} { return f.closed }

// enter requests a phase. It may be called on any goroutine.
func (f *Forwarder) enter(p phase) {
	f.requested.Store(int32(p))
	f.wake()
}

// wake interrupts the loop's wait. It fails only if the loop has ended.
func (f *Forwarder) wake() { _ = f.epoll.SetReadDeadline(time.Unix(1, 0)) }

// wait sets how long the loop waits for a socket to be ready; zero means without a limit. If another phase was
// requested in the meantime, the wait ends at once.
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

// reset ends all sessions. It does not use the lists of sessions, which may be damaged.
func (f *Forwarder) reset() {
	for _, s := range f.sessions.byKey {
		s.disconnect()
		s.share.Give(1)
	}
	f.traffic.Sessions.Add(-int64(len(f.sessions.byKey)))
	f.sessions, f.queued, f.batch = sessions{}, nil, nil
	clear(f.bySocket)
}
