package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
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
	// spent says that a part of a body has gone to the endpoint that comes in once. broken is how the client failed to send it.
	spent  bool
	broken error
	// taken is when the last part of such a body came in.
	taken time.Time
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

// took notes that a part of a body has come in for the last time.
func (i *idle) took(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.taken = time.Now()
	if i.spent = true; err != nil && !errors.Is(err, io.EOF) {
		i.broken = err
	}
}

// asked is since when the endpoint has had all that it may answer to; zero is from the start. A client that sends slowly does
// not make an endpoint slow.
func (i *idle) asked() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.taken
}

// errBroken is for a body that the client does not send as it should.
var errBroken = errors.New("the body of the request breaks off")

// sent says whether another endpoint could have the request, too. An error is that of a client who does not send all of it.
func (i *idle) sent() (again bool, _ error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.broken != nil {
		return false, fmt.Errorf("%w: %w", errBroken, i.broken)
	}
	return !i.spent, nil
}

// sending is the body of a request. Each read says that the endpoint has taken what was read before.
type sending struct {
	io.ReadCloser
	idle *idle
	// once says that it comes from the client, and cannot be read again.
	once bool
}

func (s *sending) Read(b []byte) (int, error) {
	s.idle.pause()
	if s.once {
		// Before it waits: what comes in then is for this endpoint.
		s.idle.took(nil)
	}
	n, err := s.ReadCloser.Read(b)
	if s.once {
		s.idle.took(err)
	}
	if err != nil {
		s.idle.reset(s.idle.read)
	} else {
		s.idle.reset(s.idle.write)
	}
	return n, err
}

// Close leaves the body to the server, which closes it when the request has been served. A transport closes it while it still
// reads, and not every reader in between is made for that.
func (*sending) Close() error { return nil }

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
