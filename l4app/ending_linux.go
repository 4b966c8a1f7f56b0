package l4app

import (
	"time"

	"golang.org/x/sys/unix"
)

// stage is how far the end of a forwarder has come; the zero value is not at all.
type stage int32

const (
	// leaving takes no new clients, and ends when nothing moves any more between the others and their endpoints.
	leaving stage = iota + 1
	stopped
)

// lastWords is for how long a client and its endpoint have to be silent, so that a port that is gone does not wait for them: most
// clients of DNS wait as long for an answer.
const lastWords = 5 * time.Second

// over says whether there is nothing more to do.
func (f *forwarder) over() bool {
	if f.stage = stage(f.wanted.Load()); f.stage == leaving {
		select {
		case <-f.left:
		default:
			f.sweep()
			if len(f.sessions.byPeer) > 0 {
				close(f.left)
			}
		}
	}
	return f.stage == stopped || f.stage == leaving && len(f.sessions.byPeer) == 0
}

// Close ends the forwarder, which runs, and soon after that all of its sessions. The address is free when it returns.
func (f *forwarder) Close() error {
	f.want(stopped)
	<-f.closed
	return nil
}

// leave lets clients go on with whom something moves, and takes no others. It returns true when there are none; the address
// is free then.
func (f *forwarder) leave() bool {
	f.want(leaving)
	select {
	case <-f.closed:
		return true
	case <-f.left:
		return false
	}
}

// want is for any goroutine.
func (f *forwarder) want(s stage) {
	f.wanted.Store(int32(s))
	f.wake()
}

// wake ends the wait of the loop. What can go wrong is that the loop has ended.
func (f *forwarder) wake() { _ = f.epoll.SetReadDeadline(time.Unix(1, 0)) }

// wait sets until when the loop waits for something to do; zero is as long as it takes. It waits no longer when others want
// something of it.
func (f *forwarder) wait(until time.Time) {
	_ = f.epoll.SetReadDeadline(until)
	if stage(f.wanted.Load()) != f.stage {
		f.wake()
	}
}

func (f *forwarder) close() {
	_ = unix.Close(f.socket)
	close(f.closed)
	f.forget()
	_ = f.epoll.Close()
}

// forget ends all sessions. It trusts none of their lists.
func (f *forwarder) forget() {
	for _, s := range f.sessions.byPeer {
		s.hangUp()
	}
	f.traffic.sessions.Add(-int64(len(f.sessions.byPeer)))
	f.sessions, f.asking, f.batch = sessions{}, nil, nil
	clear(f.bySocket)
}
