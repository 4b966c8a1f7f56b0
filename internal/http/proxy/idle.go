package proxy

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// idleTimer ends a gRPC or FastCGI request if its endpoint neither accepts nor sends data for too long. For FastCGI,
// the timer does not run while the controller waits for the client. For gRPC it does: the request ends if both sides
// are silent for the read timeout.
type idleTimer struct {
	ctx         context.Context //nolint:containedctx // An idleTimer belongs to one request.
	cancel      context.CancelCauseFunc
	read, write time.Duration
	// streams is true for gRPC.
	streams bool

	mu    sync.Mutex
	timer *time.Timer
	ended bool
}

// errSilent is the error of a request that an idleTimer has ended, because the endpoint was silent for too long.
var errSilent error = silentError{}

type silentError struct{}

func (silentError) Error() string {
	return "the endpoint has neither accepted nor sent data within the timeout"
}
func (silentError) Timeout() bool   { return true }
func (silentError) Temporary() bool { return true }

// newIdleTimer returns the idleTimer of one request. After a timeout it calls stop to end reading the request body,
// because net/http does not notice a cancelled context while it waits for the body.
func newIdleTimer(ctx context.Context, s *Settings, stop func()) *idleTimer {
	i := &idleTimer{read: s.Read, write: s.Write, streams: speaksGRPC(s.Protocol)}
	i.ctx, i.cancel = context.WithCancelCause(ctx)
	i.timer = panics.AfterFunc("proxy/idle", time.Hour, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if !i.ended {
			i.cancel(errSilent)
			stop()
		}
	})
	i.timer.Stop()
	return i
}

// reset restarts the timer, so that it expires after the duration d.
func (i *idleTimer) reset(d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.ended {
		i.timer.Reset(d)
	}
}

// pause stops the timer until the next call of reset. It is called when the request no longer waits for the endpoint.
func (i *idleTimer) pause() { i.timer.Stop() }

// awaitClient is called before each read of the request body. It starts the read timeout for gRPC, and pauses the timer
// for FastCGI.
func (i *idleTimer) awaitClient() {
	if i.streams {
		i.reset(i.read)
	} else {
		i.pause()
	}
}

// end stops the timer and cancels the context of the request to the endpoint.
func (i *idleTimer) end() {
	i.mu.Lock()
	i.ended = true
	i.mu.Unlock()
	i.timer.Stop()
	i.cancel(nil)
}

// explain returns errSilent if the timeout caused err, otherwise err.
func (i *idleTimer) explain(err error) error {
	if errors.Is(context.Cause(i.ctx), errSilent) {
		return errSilent
	}
	return err
}

// timedRequestBody is a request body that restarts the idleTimer on each read. net/http and package fastcgi read the
// next part of the body only when the endpoint has accepted the previous part.
type timedRequestBody struct {
	*bodyReader
	idle    *idleTimer
	request *request
}

func (s *timedRequestBody) Read(b []byte) (int, error) {
	s.idle.awaitClient()
	n, err := s.bodyReader.Read(b)
	if err != nil {
		s.idle.reset(s.idle.read)
	} else {
		s.idle.reset(s.idle.write)
	}
	return n, err
}

// Close interrupts a read in progress, because the caller may wait for the end of that read.
func (s *timedRequestBody) Close() error {
	s.request.stopReading(s.bodyReader)
	return nil
}

// timedResponseBody is a response body that restarts the idleTimer before each read and pauses it after the read.
type timedResponseBody struct {
	body io.ReadCloser
	idle *idleTimer
	// flushes is the writer to the client that is flushed before each read, because a read may have to wait for more
	// data. If flushes is nil, data may stay buffered.
	flushes message.Writer
}

func (r *timedResponseBody) Read(b []byte) (int, error) {
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

func (r *timedResponseBody) stop() { r.idle.end() }
