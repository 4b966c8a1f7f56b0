package proxy

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// upload represents a request body that a separate goroutine sends to an endpoint. The goroutine is necessary because
// the endpoint may respond before it has received the whole body.
type upload struct {
	from *bodyReader
	done chan struct{}
	// last is true once the last part of the body is being sent. complete is true once the whole body has been sent.
	last     atomic.Bool
	complete bool
	// broken is the error of reading the body from the client, and failed the error of sending the body to the
	// endpoint.
	broken, failed error
}

func (r *request) upload(c *conn) *upload {
	r.hold()
	u := &upload{from: r.body.reader(), done: make(chan struct{})}
	c.suspendReadDeadline()
	panics.Go("proxy/upload", func() {
		defer close(u.done)
		panics.Guard("proxy/upload", func() { u.run(c, r) }, func() { u.broken = errPanicked })
		if u.broken != nil || isTimeout(u.failed) {
			// Interrupt the goroutine that waits for the response, because the endpoint does not respond to an
			// incomplete request.
			c.interrupt()
			return
		}
		c.startReadTimeout()
	})
	return u
}

// run sends the body in parts of limited size.
func (u *upload) run(c *conn, r *request) {
	if memory, ok := r.body.wholeInMemory(); ok {
		u.write(c, memory)
		return
	}
	buffer := large.Get()
	u.pass(c, r, buffer.Bytes())
	buffer.Release()
}

// pass sends a body that is not completely in memory. It reads the body part by part, and sends each part to the
// endpoint.
func (u *upload) pass(c *conn, r *request, buffer []byte) {
	framing, left := r.body.framing()
	chunked := framing == http1.Chunked
	for room := buffer[http1.ChunkHeadSize : len(buffer)-len(http1.EndOfChunk)]; chunked || left > 0; {
		if !chunked {
			room = room[:min(int64(len(room)), left)]
		}
		n, err := u.from.Read(room)
		if left -= int64(n); !chunked && left == 0 {
			u.last.Store(true)
		}
		if n > 0 {
			if u.failed = c.write(piece(buffer, n, chunked)); u.failed != nil {
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF) && chunked:
			u.end(c, r)
			return
		case err != nil && !u.last.Load():
			u.broken = err
			return
		}
	}
	u.complete = true
}

// maxPiece is the maximum number of bytes per write. The write timeout applies to each write separately.
const maxPiece = 128 << 10

// write sends a body that is completely in memory.
func (u *upload) write(c *conn, memory []byte) {
	for left := memory; len(left) > 0; {
		piece := left[:min(len(left), maxPiece)]
		left = left[len(piece):]
		u.last.Store(len(left) == 0)
		if u.failed = c.write(piece); u.failed != nil {
			return
		}
	}
	u.complete = true
}

// piece returns the next part of the body in the form in which it is sent. The part has n bytes, which are in buffer
// after the space for a chunk header. If chunked is true, piece adds the chunk header before these bytes and the end of
// the chunk after them.
func piece(buffer []byte, n int, chunked bool) []byte {
	const front = http1.ChunkHeadSize
	if !chunked {
		return buffer[front : front+n]
	}
	var room [front]byte
	line := http1.AppendChunkHead(room[:0], n)
	begin := front - len(line)
	copy(buffer[begin:], line)
	return append(buffer[begin:front+n], http1.EndOfChunk...)
}

// end sends the last chunk and the trailers.
func (u *upload) end(c *conn, r *request) {
	end, err := http1.AppendLastChunk(nil, r.outgoingTrailers())
	if err != nil {
		u.broken = err
		return
	}
	u.last.Store(true)
	u.failed = c.write(end)
	u.complete = u.failed == nil
}

// join waits until the upload has ended. If the response failed, or is complete before the last part of the body is
// sent, join interrupts the upload. It reports whether the whole body was sent. err is the error of receiving the
// response, or nil. If the upload caused err, join returns the upload's error instead of err.
func (u *upload) join(c *conn, r *request, err error) (complete bool, _ error) {
	interrupted := false
	select {
	case <-u.done:
	default:
		if interrupted = err != nil || !u.last.Load(); interrupted {
			c.interrupt()
			r.stopReadingAndWait(u.from)
		}
		<-u.done
	}
	switch {
	case err == nil:
	case u.broken != nil && !errors.Is(u.broken, errStopped):
		err = because(err, fmt.Errorf("%w: %w", errClientBody, u.broken))
	case isTimeout(u.failed) && !interrupted:
		err = because(err, u.failed)
	}
	return u.complete, err
}

// because(err, reason) returns the error reason, which is the cause of err. If err wraps exchange.ErrAborted, the
// result wraps exchange.ErrAborted, too.
func because(err, reason error) error {
	if errors.Is(err, exchange.ErrAborted) {
		return fmt.Errorf("%w: %w", exchange.ErrAborted, reason)
	}
	return reason
}
