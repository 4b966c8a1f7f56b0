package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// idle ends a request of the long way when its endpoint neither takes nor gives anything for too long. The time in which
// the client is waited for does not count.
type idle struct {
	ctx         context.Context //nolint:containedctx // It is the context of the one request that idle is made for.
	cancel      context.CancelCauseFunc
	read, write time.Duration

	mu    sync.Mutex
	timer *time.Timer
	ended bool
}

// errSilent is a time limit that has passed.
var errSilent error = silence{}

type silence struct{}

func (silence) Error() string   { return "the endpoint has neither taken nor sent anything for too long" }
func (silence) Timeout() bool   { return true }
func (silence) Temporary() bool { return true }

func newIdle(ctx context.Context, s *Settings) *idle {
	i := &idle{read: s.Read, write: s.Write}
	i.ctx, i.cancel = context.WithCancelCause(ctx)
	i.timer = time.AfterFunc(time.Hour, func() { i.cancel(errSilent) })
	i.timer.Stop()
	return i
}

// reset gives the endpoint so much time from now on.
func (i *idle) reset(d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.ended {
		i.timer.Reset(d)
	}
}

// pause waits for somebody else.
func (i *idle) pause() { i.timer.Stop() }

// end lets go of the request.
func (i *idle) end() {
	i.mu.Lock()
	i.ended = true
	i.mu.Unlock()
	i.timer.Stop()
	i.cancel(nil)
}

// explain returns the time limit as the error of what it has ended.
func (i *idle) explain(err error) error {
	if errors.Is(context.Cause(i.ctx), errSilent) {
		return errSilent
	}
	return err
}

// sending is the body of a request. Each read says that the endpoint has taken what was read before.
type sending struct {
	io.ReadCloser
	idle *idle
	// streamed is set as soon as there is something of a body that is not kept.
	streamed *atomic.Bool
}

func (s *sending) Read(b []byte) (int, error) {
	s.idle.pause()
	n, err := s.ReadCloser.Read(b)
	if n > 0 && s.streamed != nil {
		s.streamed.Store(true)
	}
	if err != nil {
		s.idle.reset(s.idle.read)
	} else {
		s.idle.reset(s.idle.write)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = &unread{err}
	}
	return n, err
}

// unread is the error of a body that the client does not send as it should. The endpoint has no part in it.
type unread struct{ error }

func (u *unread) Unwrap() error { return u.error }

// receives puts the limit on the body of an answer, or on the connection that the request has become.
func (i *idle) receives(response *http.Response) {
	if stream, ok := response.Body.(io.ReadWriteCloser); ok && response.StatusCode == http.StatusSwitchingProtocols {
		i.reset(i.read)
		// The transport has let go of the connection, so the end of the context has to end it.
		context.AfterFunc(i.ctx, func() { _ = stream.Close() })
		response.Body = &upgraded{ReadWriteCloser: stream, idle: i}
		return
	}
	response.Body = &receiving{ReadCloser: response.Body, idle: i}
}

// receiving is the body of an answer.
type receiving struct {
	io.ReadCloser
	idle *idle
}

func (r *receiving) Read(b []byte) (int, error) {
	r.idle.reset(r.idle.read)
	n, err := r.ReadCloser.Read(b)
	r.idle.pause()
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.idle.explain(err)
	}
	return n, err
}

func (r *receiving) Close() error {
	defer r.idle.end()
	return r.ReadCloser.Close()
}

// upgraded is a WebSocket. Whatever goes in either direction moves the limit, as in nginx.
type upgraded struct {
	io.ReadWriteCloser
	idle *idle
}

func (u *upgraded) Read(b []byte) (int, error) {
	n, err := u.ReadWriteCloser.Read(b)
	u.idle.reset(u.idle.read)
	return n, err
}

func (u *upgraded) Write(b []byte) (int, error) {
	u.idle.reset(u.idle.read)
	return u.ReadWriteCloser.Write(b)
}

func (u *upgraded) Close() error {
	defer u.idle.end()
	return u.ReadWriteCloser.Close()
}
