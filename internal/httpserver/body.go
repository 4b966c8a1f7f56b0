package httpserver

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/http1"
	"github.com/k8singress/k8singress/internal/message"
)

// body is that of one request. Each request with a body has its own, because whoever still reads one when its handler has returned
// must not read from the next.
type body struct {
	mu sync.Mutex
	c  *conn
	// left is what is to come of a body with a length.
	left    int64
	chunked bool
	decoder http1.Decoder
	// expects says that the client waits for 100 Continue.
	expects bool
	// err is what ended it; io.EOF is its end.
	err error
	// whole says that all of it has been read, and over that nobody wants the rest.
	whole, over atomic.Bool
}

// errBodyOver says that the handler has returned.
var errBodyOver = errors.New("the request is over: its body cannot be read any more")

// beginBody gives the request its body.
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

// Limit says how many bytes the body may have. One in chunks is refused with an *http1.Error as soon as a chunk says that it is larger.
func (b *body) Limit(most int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.decoder.Limit(most)
}

// Read reads some of the body. A time limit shows as a timeout, and a client that goes away as io.ErrUnexpectedEOF.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	b.askForIt()
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

// askForIt tells a client that waits for it to send the body.
func (b *body) askForIt() {
	if b.expects {
		b.expects = false
		b.c.writer.sayContinue()
	}
}

// directly is how much room it takes to read past the buffer.
const directly = 1 << 10

// socket reads from the connection into p, or into the buffer where p is small.
func (b *body) socket(p []byte) (int, error) {
	if err := b.prepare(); err != nil {
		return 0, err
	}
	c := b.c
	var n int
	var err error
	if len(p) >= directly {
		n, err = c.nc.Read(p)
	} else if err = c.fill(); err == nil {
		n = copy(p, c.input.unread())
		c.input.use(n)
	}
	if n > 0 {
		return n, nil
	}
	return 0, cut(err)
}

// prepare moves the deadline for a read. It returns an error if the body has been halted, because that may have undone what halt did.
func (b *body) prepare() error {
	b.c.reads.extend(b.c.options.BodyTimeout)
	if b.over.Load() {
		return errBodyOver
	}
	return nil
}

// halt has a read that is under way end, and all others. Nothing but the end of the request comes after it.
func (b *body) halt() {
	b.over.Store(true)
	_ = b.c.nc.SetReadDeadline(longAgo)
}

// EndBody ends a read of the body of the request. The connection ends with the answer then.
func (w *writer) EndBody() {
	if b := w.c.body; b != nil && !b.whole.Load() {
		b.halt()
	}
}

// cut is the error of a body that ends too early.
func cut(err error) error {
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
	} else if n, err = b.socket(p); err != nil {
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
			if ahead := b.decoder.Ahead(); n == 0 && ahead > 0 && len(p) >= directly {
				n, err = b.socket(p[:min(int64(len(p)), ahead)])
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
				return 0, cut(err)
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

// mostDrained is how much of a body is read for the sake of the next request.
const mostDrained = 256 << 10

// ended says whether all of the body has been read.
func (b *body) ended() bool { return errors.Is(b.err, io.EOF) }

// rest returns how many bytes are still to be read for the next request, and whether that is worth while. A client that has not been
// told to continue may send the body, or not.
func (b *body) rest() (int64, bool) {
	switch {
	case b.ended():
		return 0, true
	case b.err != nil || b.over.Load() || b.expects || b.chunked || b.left > mostDrained:
		return 0, false
	}
	return b.left, true
}

// unreadBody says, when the head of the answer is written, whether the connection ends with it because of the body of the request.
func (c *conn) unreadBody() bool {
	b := c.body
	if b == nil {
		return false
	}
	if !b.mu.TryLock() {
		// Somebody reads it while it is answered.
		return true
	}
	defer b.mu.Unlock()
	_, ok := b.rest()
	return !ok
}

// endBody takes the body from a handler that has returned. It returns how many bytes of it come before the next request, and whether
// there can be a next one.
func (c *conn) endBody() (rest int64, ok bool) {
	b := c.body
	if b == nil {
		return 0, true
	}
	if !b.mu.TryLock() {
		b.halt()
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if b.over.Load() {
		c.reads.spoil()
	}
	rest, ok = b.rest()
	b.err = errBodyOver
	return rest, ok
}

// drain reads the rest of a body, and returns whether it came to the end.
func (c *conn) drain(rest int64) bool {
	n := min(int64(len(c.input.unread())), rest)
	c.input.use(int(n))
	return n == rest || c.discard(rest-n) == rest-n
}

// draining is how long the rest of a body may take.
const draining = 5 * time.Second

// discard reads and throws away, and returns how much.
func (c *conn) discard(want int64) (done int64) {
	c.reads.fix(time.Since(began) + draining)
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
