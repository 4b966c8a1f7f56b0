package httpserver

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
)

// body is the body of one request. Each request gets a new body value: a goroutine that still reads after the handler
// has returned must not get data of the next request.
type body struct {
	mu sync.Mutex
	c  *Conn
	// left is the number of unread bytes of a body with a Content-Length.
	left    int64
	chunked bool
	decoder http1.Decoder
	// expects is true if the client waits for 100 Continue.
	expects bool
	// err is returned by further calls of Read. It is io.EOF after the whole body was read.
	err error
	// whole is true after the whole body was read. stopped is true if the rest of the body must not be read, because
	// the request is about to end.
	whole, stopped atomic.Bool
}

// errBodyOver is returned if the request body is read after the handler has returned.
var errBodyOver = errors.New("the request has ended: its body can no longer be read")

// beginBody creates the body of the current request, if it has one.
func (c *Conn) beginBody() {
	if c.body = nil; c.head.Framing == http1.NoBody {
		return
	}
	b := &body{c: c, left: c.request.Length, chunked: c.head.Framing == http1.Chunked, expects: c.head.Expects}
	c.body, c.request.Body = b, b
	if b.chunked {
		c.request.Trailers = b.trailers
	}
}

func (b *body) trailers() message.Fields {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.decoder.Trailers()
}

// Limit sets the maximum size of a chunked body in bytes. If a chunk exceeds the limit, Read fails with an *http1.Error
// as soon as it has read the size of the chunk.
func (b *body) Limit(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.decoder.Limit(limit)
}

// Read reads a part of the body. If no data arrives within Limits.Body, it returns a timeout error. If the client
// disconnects, it returns io.ErrUnexpectedEOF.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	b.sendContinue()
	read := b.readSized
	if b.chunked {
		read = b.readChunked
	}
	n, err := read(p)
	if err != nil {
		b.finish(err)
	}
	return n, err
}

func (b *body) finish(err error) {
	b.err = err
	if errors.Is(err, io.EOF) {
		b.c.bodyRead()
	}
}

// sendContinue sends 100 Continue if the client waits for it.
func (b *body) sendContinue() {
	if b.expects {
		b.expects = false
		b.c.writer.sendContinue()
	}
}

// minDirectRead is the minimum buffer size in bytes for reading a body directly from the connection. Smaller reads go
// through the input buffer of the connection.
const minDirectRead = 1 << 10

// readSocket reads body bytes from the connection into p. If p is small, it fills the input buffer of the connection
// and then copies from it to p.
func (b *body) readSocket(p []byte) (int, error) {
	if err := b.prepare(); err != nil {
		return 0, err
	}
	c := b.c
	var n int
	var err error
	if len(p) >= minDirectRead {
		n, err = c.nc.Read(p)
	} else if err = c.fill(); err == nil {
		n = copy(p, c.input.unread())
		c.input.use(n)
	}
	if n > 0 {
		return n, nil
	}
	return 0, unexpectedEnd(err)
}

// prepare sets the deadline for the next read of the body, and returns an error if stop was called. The method stop
// interrupts reads with a deadline in the past, which the new deadline may have replaced. So prepare checks b.stopped
// after it has set the deadline.
func (b *body) prepare() error {
	b.c.reads.extend(b.c.limits.Body)
	if b.stopped.Load() {
		return errBodyOver
	}
	return nil
}

// stop makes reads of the body fail, including a read in progress. It is called when the rest of the body is not
// needed.
func (b *body) stop() {
	b.stopped.Store(true)
	_ = b.c.nc.SetReadDeadline(longAgo)
}

// EndBody makes further reads of the request body fail. The connection is then closed after the response. If the body
// was already read to its end, EndBody does nothing.
func (w *writer) EndBody() {
	if b := w.c.body; b != nil && !b.whole.Load() {
		b.stop()
	}
}

// unexpectedEnd converts the error of a read before the end of the body: io.EOF becomes io.ErrUnexpectedEOF. Other
// errors are returned unchanged.
func unexpectedEnd(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (b *body) readSized(p []byte) (n int, err error) {
	p = p[:min(int64(len(p)), b.left)]
	if in := &b.c.input; !in.empty() {
		n = copy(p, in.unread())
		in.use(n)
		if in.empty() {
			in.release()
		}
	} else if n, err = b.readSocket(p); err != nil {
		return 0, err
	}
	if b.left -= int64(n); b.left == 0 {
		err = io.EOF
	}
	return n, err
}

func (b *body) readChunked(p []byte) (n int, err error) {
	in := &b.c.input
	for {
		if in.empty() {
			if ahead := b.decoder.Ahead(); n == 0 && ahead > 0 && len(p) >= minDirectRead {
				n, err = b.readSocket(p[:min(int64(len(p)), ahead)])
				b.decoder.Took(n)
				return n, err
			}
			if n > 0 {
				in.release()
				return n, nil
			}
			if err := b.prepare(); err != nil {
				return 0, err
			}
			if err := b.c.fill(); err != nil {
				return 0, unexpectedEnd(err)
			}
		}
		data, used, done, err := b.decoder.Next(in.unread())
		fits := copy(p[n:], data)
		b.decoder.Return(len(data) - fits)
		in.use(used - len(data) + fits)
		n += fits
		switch {
		case err != nil:
			return n, err
		case done:
			if in.empty() {
				in.release()
			}
			return n, io.EOF
		case n == len(p):
			return n, nil
		}
	}
}

// maxDrained is the maximum number of body bytes that are read and discarded after the response. If more bytes are
// left, the connection is closed.
const maxDrained = 256 << 10

// ended reports whether the body was read to its end.
func (b *body) ended() bool { return errors.Is(b.err, io.EOF) }

// rest returns the number of unread body bytes. It returns false if the connection should be closed instead of reading
// them: too many bytes may be left, a read has failed, or the client still waits for 100 Continue, so that it is
// unknown whether it will send the body.
func (b *body) rest() (int64, bool) {
	switch {
	case b.ended():
		return 0, true
	case b.err != nil || b.stopped.Load() || b.expects || b.chunked || b.left > maxDrained:
		return 0, false
	}
	return b.left, true
}

// unreadBody reports whether the connection must be closed after the response, because the rest of the request body
// will not be read. It is called before the response head is written.
func (c *Conn) unreadBody() bool {
	b := c.body
	if b == nil {
		return false
	}
	if !b.mu.TryLock() {
		// Another goroutine is reading the body. Assume that it will not read the whole body.
		return true
	}
	defer b.mu.Unlock()
	_, ok := b.rest()
	return !ok
}

// endBody makes further reads of the body fail. It is called after the handler has returned. It returns the number of
// unread body bytes that must be discarded before the next request. ok is false if there can be no next request.
func (c *Conn) endBody() (rest int64, ok bool) {
	b := c.body
	if b == nil {
		return 0, true
	}
	if !b.mu.TryLock() {
		b.stop()
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if b.stopped.Load() {
		c.reads.invalidate()
	}
	rest, ok = b.rest()
	b.err = errBodyOver
	return rest, ok
}

// c.drain(rest) reads and discards the unread part of a body, which has rest bytes. It returns false if reading has
// failed.
func (c *Conn) drain(rest int64) bool {
	n := min(int64(len(c.input.unread())), rest)
	c.input.use(int(n))
	return n == rest || c.discard(rest-n) == rest-n
}

// drainTime is the maximum time for discarding the rest of a body.
const drainTime = 5 * time.Second

// discard reads and discards up to want bytes from the connection. It returns the number of discarded bytes.
func (c *Conn) discard(want int64) (done int64) {
	c.reads.fix(time.Since(processStart) + drainTime)
	buffer := small.Get()
	space := buffer.Bytes()
	for done < want {
		n, err := c.nc.Read(space[:min(int64(len(space)), want-done)])
		if done += int64(n); err != nil {
			break
		}
	}
	buffer.Release()
	return done
}
