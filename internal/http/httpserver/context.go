package httpserver

import (
	"context"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/process/panics"
)

type contextFunc = func() context.Context

// requestContext is the context of one request. It is canceled when the request ends or the client disconnects. The
// connection is only watched for a disconnect after Done was called, because watching needs a goroutine and two system
// calls.
type requestContext struct {
	c *Conn

	mu   sync.Mutex
	done chan struct{}
	err  error
	// watched is closed when the goroutine that watches the socket for a disconnect has ended. It is nil if no
	// goroutine was started.
	watched chan struct{}
}

// makeContext creates the context of the current request. It is called only if the context is used.
func (c *Conn) makeContext() context.Context {
	x := &requestContext{c: c}
	c.context.Store(x)
	return x
}

// Deadline returns false, because there is no deadline.
func (*requestContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value returns nil, because the context has no values.
func (*requestContext) Value(any) any { return nil }

// Err returns context.Canceled if the request has ended or the client has disconnected, otherwise nil.
func (x *requestContext) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// Done returns a channel that is closed when the request is over or the client has disconnected.
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

// end cancels the context.
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

// watch starts a goroutine that watches the socket for a disconnect of the client. It does nothing if there may be
// unread data on the socket: if the request body is not read to its end, or bytes after it have arrived. The caller
// must hold x.mu.
func (x *requestContext) watch() {
	c := x.c
	if x.watched != nil || c.lowerTCP == nil || !canWatch || c.body != nil && !c.body.whole.Load() || c.ahead.Load() {
		return
	}
	raw, err := c.lowerTCP.SyscallConn()
	if err != nil {
		return
	}
	over := make(chan struct{})
	x.watched = over
	// The deadline of the last read would end the watch early. unwatch invalidates the cached deadline.
	_ = c.lowerTCP.SetReadDeadline(time.Time{})
	panics.Go("httpserver/watch", func() {
		defer close(over)
		gone := false
		// When unwatch sets the read deadline to a time in the past, Read returns an error.
		if err := raw.Read(func(fd uintptr) bool {
			gone = isGone(fd)
			return gone
		}); err == nil && gone {
			x.end()
		}
	})
}

// bodyRead is called when the request body was read to its end. The socket can then be watched for a disconnect of the
// client.
func (c *Conn) bodyRead() {
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

// endContext cancels the context of the current request, and waits until the goroutine that watches the socket for a
// disconnect has ended.
func (c *Conn) endContext() {
	if x := c.context.Swap(nil); x != nil {
		x.end()
		x.unwatch()
	}
}

// unwatch stops watching the socket for a disconnect of the client, for the rest of the request.
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
	_ = c.lowerTCP.SetReadDeadline(longAgo)
	<-watched
	c.reads.invalidate()
	_ = c.nc.SetReadDeadline(time.Time{})
}

// over is stored in requestContext.watched when the socket must not be watched any more, so that watch does not start a
// goroutine.
var over = make(chan struct{})
