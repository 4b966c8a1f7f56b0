package httpserver

import (
	"context"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/panics"
)

type contextFunc = func() context.Context

// requestContext is the context of one request. It ends with the request, and when the client goes away: that is found out only once
// somebody waits for it, because it costs a goroutine and two system calls.
type requestContext struct {
	c *conn

	mu   sync.Mutex
	done chan struct{}
	err  error
	// watched is closed when nobody looks at the socket any more; nil is that nobody does.
	watched chan struct{}
}

// makeContext makes the context of the request when it is asked for.
func (c *conn) makeContext() context.Context {
	x := &requestContext{c: c}
	c.context.Store(x)
	return x
}

// Deadline says that there is none.
func (*requestContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value has no values.
func (*requestContext) Value(any) any { return nil }

// Err is why the context has ended.
func (x *requestContext) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// Done is closed when the request is over or the client has gone.
func (x *requestContext) Done() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done == nil {
		x.done = make(chan struct{})
		if x.err != nil {
			close(x.done)
		} else {
			x.watch()
		}
	}
	return x.done
}

// end ends the context.
func (x *requestContext) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return
	}
	x.err = context.Canceled
	if x.done != nil {
		close(x.done)
	}
}

// watch looks at the socket in a goroutine, if the whole body of the request has been read, and nothing has come behind it. mu is held.
func (x *requestContext) watch() {
	c := x.c
	if x.watched != nil || c.under == nil || !canWatch || c.body != nil && !c.body.whole.Load() || c.ahead.Load() {
		return
	}
	raw, err := c.under.SyscallConn()
	if err != nil {
		return
	}
	over := make(chan struct{})
	x.watched = over
	panics.Go("httpserver/watch", func() {
		defer close(over)
		gone := false
		// It comes back without an answer when the deadline is changed to one that is over.
		if err := raw.Read(func(fd uintptr) bool {
			gone = isGone(fd)
			return gone
		}); err == nil && gone {
			x.end()
		}
	})
}

// bodyRead is called when the body has been read: from now on the socket can be watched.
func (c *conn) bodyRead() {
	c.ahead.Store(!c.input.empty())
	c.body.whole.Store(true)
	if x := c.context.Load(); x != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.done != nil && x.err == nil {
			x.watch()
		}
	}
}

// endContext ends the context of the request, and waits until nobody looks at the socket.
func (c *conn) endContext() {
	if x := c.context.Swap(nil); x != nil {
		x.end()
		x.unwatch()
	}
}

// unwatch ends the look at the socket, for good.
func (x *requestContext) unwatch() {
	x.mu.Lock()
	c, watched := x.c, x.watched
	if watched == nil {
		x.watched = over
	}
	x.mu.Unlock()
	if watched == nil || watched == over {
		return
	}
	_ = c.under.SetReadDeadline(longAgo)
	<-watched
	c.reads.spoil()
	_ = c.nc.SetReadDeadline(time.Time{})
}

// over is the end of a look at the socket that has not begun.
var over = make(chan struct{})
