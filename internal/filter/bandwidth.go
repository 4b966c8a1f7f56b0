package filter

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
)

// bandwidth has answers take their time.
type bandwidth struct{ ir.Bandwidth }

func newBandwidth(of ir.Bandwidth) (Filter, error) {
	if of.BytesPerSecond <= 0 || of.After < 0 {
		return nil, errors.New("bytes_per_second must be above zero, and after not below")
	}
	return &bandwidth{of}, nil
}

func (h *bandwidth) Apply(x *exchange.Exchange) (bool, error) {
	x.Writer = &pacedWriter{Writer: x.Writer, ctx: x.Context(), rate: h.BytesPerSecond, free: h.After}
	return false, nil
}

// perSecond is how many parts of an answer are written in a second.
const perSecond = 4

// pacedWriter writes the body of an answer part by part, and waits before each as long as the one before it was to take. It is for one request. A
// connection that is switched to another protocol is not paced, as with nginx.
type pacedWriter struct {
	message.Writer
	ctx  context.Context //nolint:containedctx // It is that of the request, as the writer is.
	rate int64
	// free is how many bytes may still be written at once.
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

// account notes what has been written, and when the next part may be.
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

// wait sends what there is before it waits.
func (w *pacedWriter) wait() error {
	left := time.Until(w.next)
	if left <= 0 {
		return nil
	}
	if err := w.Flush(); err != nil {
		return err
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
}

// ReadFrom writes by Write: what the kernel moves by itself is not paced.
func (w *pacedWriter) ReadFrom(source io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, source)
}
