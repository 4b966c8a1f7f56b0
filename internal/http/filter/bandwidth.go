package filter

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// bandwidth limits the transfer rate of responses.
type bandwidth struct{ ir.Bandwidth }

func newBandwidth(of ir.Bandwidth) (Filter, error) {
	if of.BytesPerSecond <= 0 || of.After < 0 {
		return nil, errors.New("bytes_per_second must be positive, and 'after' must not be negative")
	}
	return &bandwidth{of}, nil
}

func (h *bandwidth) Apply(x *exchange.Exchange) (bool, error) {
	x.Writer = &pacedWriter{Writer: x.Writer, ctx: x.Context(), rate: h.BytesPerSecond, free: h.After}
	return false, nil
}

// perSecond is the number of writes per second into which a rate-limited response is divided.
const perSecond = 4

// pacedWriter limits the transfer rate of one response. It writes the body in parts, and delays each part until the
// previous part should have been transferred at the configured rate. As in nginx, connections that were upgraded to
// another protocol are not limited.
type pacedWriter struct {
	message.Writer
	ctx  context.Context //nolint:containedctx // The writer lives as long as the request.
	rate int64
	// free is the number of bytes that may still be written before the rate limit applies.
	free int64
	next time.Time
}

func (w *pacedWriter) Write(part []byte) (written int, err error) {
	for len(part) > 0 {
		n := int64(len(part))
		if w.free <= 0 {
			if err := w.wait(); err != nil {
				return written, err
			}
			n = min(n, max(1, w.rate/perSecond))
		} else {
			n = min(n, w.free)
		}
		done, err := w.Writer.Write(part[:n])
		written += done
		if err != nil {
			return written, err
		}
		w.account(n)
		part = part[n:]
	}
	return written, nil
}

// account records that n bytes were written: it subtracts them from free or, if free is used up, delays the next part.
func (w *pacedWriter) account(n int64) {
	if w.free > 0 {
		w.free -= n
		return
	}
	if now := time.Now(); w.next.Before(now) {
		w.next = now
	}
	w.next = w.next.Add(time.Duration(n * int64(time.Second) / w.rate))
}

// wait flushes the data written so far, and waits until the next part may be written.
func (w *pacedWriter) wait() error {
	left := time.Until(w.next)
	if left <= 0 {
		return nil
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return pause(w.ctx, left)
}

// pause waits for the duration d. It returns an error if the client disconnects in the meantime, which ends ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ReadFrom calls Write for all data, because the rate limit would not apply to data that the kernel copies (sendfile,
// splice).
func (w *pacedWriter) ReadFrom(source io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, source)
}
