package proxy

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/panics"
)

// idle ends a request that others than conn serve when its endpoint neither takes nor sends anything for too long. The time in which the
// controller waits for the client does not count, except with gRPC: there, silence of both sides ends the request after the read timeout.
type idle struct {
	ctx         context.Context //nolint:containedctx // It is the context of the one request that idle is made for.
	cancel      context.CancelCauseFunc
	read, write time.Duration
	// streams is true for gRPC.
	streams bool

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

// newIdle returns an idle for one request. halt is called when the limit has passed: net/http does not see the end of a context while it
// waits for the body of the request.
func newIdle(ctx context.Context, s *Settings, halt func()) *idle {
	i := &idle{read: s.Read, write: s.Write, streams: speaksGRPC(s.Protocol)}
	i.ctx, i.cancel = context.WithCancelCause(ctx)
	i.timer = panics.AfterFunc("proxy/idle", time.Hour, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if !i.ended {
			i.cancel(errSilent)
			halt()
		}
	})
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

// awaitClient is called before the body of the request is read.
func (i *idle) awaitClient() {
	if i.streams {
		i.reset(i.read)
	} else {
		i.pause()
	}
}

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
	*reading
	idle    *idle
	request *request
}

func (s *sending) Read(b []byte) (int, error) {
	s.idle.awaitClient()
	n, err := s.reading.Read(b)
	if err != nil {
		s.idle.reset(s.idle.read)
	} else {
		s.idle.reset(s.idle.write)
	}
	return n, err
}

// Close is called while it may still be read, and whoever called may wait for the end of that.
func (s *sending) Close() error {
	s.request.halt(s.reading)
	return nil
}

// receiving is the body of an answer.
type receiving struct {
	body io.ReadCloser
	idle *idle
	// flushes is as in answerBody.
	flushes message.Writer
}

func (r *receiving) Read(b []byte) (int, error) {
	if err := flush(r.flushes); err != nil {
		return 0, err
	}
	r.idle.reset(r.idle.read)
	n, err := r.body.Read(b)
	r.idle.pause()
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.idle.explain(err)
	}
	return n, err
}

func (r *receiving) stop() { r.idle.end() }
