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

// body is the body of one request. It is not reused for the next request, because a goroutine that still reads after
// the handler returned must not read from the next body.
type body struct {
	mu sync.Mutex
	c  *conn
	// left is the number of unread bytes of a body with a Content-Length.
	left    int64
	chunked bool
	decoder http1.Decoder
	// expects is true if the client waits for 100 Continue.
	expects bool
	// err is the error that ended the body. It is io.EOF at the end of the body.
	err error
	// whole is true after the whole body was read. stopped is true if the rest of the body is not needed.
	whole, stopped atomic.Bool
}

// errBodyOver is returned by reads of the body after the handler has returned.
var errBodyOver = errors.New("the request has ended: its body can no longer be read")

// beginBody creates the body of the request.
func (c *conn) beginBody() {
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

// Limit sets the maximum size of a chunked body in bytes. Reads of a larger body fail with an *http1.Error as soon as
// the size of the chunk that exceeds the limit is known.
func (b *body) Limit(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.decoder.Limit(limit)
}

// Read reads a part of the body. After BodyTimeout it returns a timeout error. If the client disconnects, it returns
// io.ErrUnexpectedEOF.
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

// minDirectRead is the minimum size in bytes of a read that bypasses the input buffer.
const minDirectRead = 1 << 10

// readSocket reads from the connection into p. If p is small, it reads into the input buffer first, and then copies to
// p.
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

// prepare sets the deadline for a read. It then checks stopped again, because the new deadline may have replaced the
// deadline that stop set.
func (b *body) prepare() error {
	b.c.reads.extend(b.c.options.BodyTimeout)
	if b.stopped.Load() {
		return errBodyOver
	}
	return nil
}

// stop makes reads of the body fail, including a read in progress. It is called when the request is about to end.
func (b *body) stop() {
	b.stopped.Store(true)
	_ = b.c.nc.SetReadDeadline(longAgo)
}

// EndBody makes a read of the request body fail. The connection is closed after the response.
func (w *writer) EndBody() {
	if b := w.c.body; b != nil && !b.whole.Load() {
		b.stop()
	}
}

// unexpectedEnd returns the error for a body that ends early.
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

// maxDrained is the maximum number of body bytes that are read and discarded to keep the connection open for the next
// request.
const maxDrained = 256 << 10

// ended reports whether the whole body was read.
func (b *body) ended() bool { return errors.Is(b.err, io.EOF) }

// rest returns the number of body bytes that must be read before the next request, and whether reading them is
// worthwhile. Reading is not worthwhile if the client still waits for 100 Continue, because it may or may not send the
// body.
func (b *body) rest() (int64, bool) {
	switch {
	case b.ended():
		return 0, true
	case b.err != nil || b.stopped.Load() || b.expects || b.chunked || b.left > maxDrained:
		return 0, false
	}
	return b.left, true
}

// unreadBody reports whether the connection has to be closed after the response because of an unread request body. It
// is called when the head of the response is written.
func (c *conn) unreadBody() bool {
	b := c.body
	if b == nil {
		return false
	}
	if !b.mu.TryLock() {
		// Another goroutine is reading the body, so the body may not have been read to its end.
		return true
	}
	defer b.mu.Unlock()
	_, ok := b.rest()
	return !ok
}

// endBody ends the body after the handler has returned. It returns the number of unread body bytes that precede the
// next request, and whether there can be a next request.
func (c *conn) endBody() (rest int64, ok bool) {
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

// drain discards the rest of a body, and reports whether it succeeded.
func (c *conn) drain(rest int64) bool {
	n := min(int64(len(c.input.unread())), rest)
	c.input.use(int(n))
	return n == rest || c.discard(rest-n) == rest-n
}

// drainTime is the maximum time for reading the rest of a body.
const drainTime = 5 * time.Second

// discard reads and discards up to want bytes, and returns how many it read.
func (c *conn) discard(want int64) (done int64) {
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
