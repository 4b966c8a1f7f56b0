package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/process/budget"
)

const (
	// maxInMemory is the maximum size, in bytes, of a body that is buffered in memory, if the budget allows it. The
	// rest of a longer body goes into an unnamed file.
	maxInMemory = 64 << 10
	// maxWholeInMemory is the maximum size, in bytes, of a longer body that is buffered in memory as a whole while the
	// budget has spare memory, because a file costs twice as much. It is ingress-nginx's default for
	// proxy-body-size.
	maxWholeInMemory = 1 << 20
)

// bodyBuffers and longBodyBuffers are pools of buffers for bodies in memory. Each buffer has one more byte, to detect
// bodies that are too long.
var (
	bodyBuffers     = pools.NewBuffers("proxy: body of 64 KiB", maxInMemory+1)
	longBodyBuffers = pools.NewBuffers("proxy: body of 1 MiB", maxWholeInMemory+1)
)

// body is a request body. It is either buffered, so that it can be sent again to another endpoint, or read from the
// client while it is sent.
type body struct {
	// namespace is the namespace of the backend. The memory and the file are charged to it.
	namespace string
	// buffer holds the first size bytes. file holds the rest.
	buffer pools.Buffer
	size   int
	// quota is the namespace's share of memory. charged is the number of bytes that the body has taken from it. quota
	// is nil while the body is short.
	quota    *budget.Share
	charged  int64
	file     *spool
	fileSize int64
	// rest reads the part that the client has yet to send. It is nil if the whole body is buffered. overflow is data
	// that was read from rest but did not fit into the file.
	rest     *clientBody
	overflow []byte
	// length is the length of the whole body. A negative length is unknown. trailers are the trailer fields of a
	// completely buffered body.
	length   int64
	trailers message.Fields
}

// readBody reads the whole body before an endpoint is chosen, unless the body is streamed. If a long body does not fit
// into the file, or there is no file, the rest is read while it is sent.
func (r *request) readBody() error {
	if r.Body == nil || r.Length == 0 {
		return nil
	}
	if r.LiftBodyTimeout != nil && speaksGRPC(r.protocol) {
		r.LiftBodyTimeout()
	}
	maxSize := r.settings.MaxBody
	if maxSize != ir.NoLimit && r.Length > maxSize {
		return exchange.Fail(http.StatusRequestEntityTooLarge,
			fmt.Errorf("the request body has %d bytes, and the limit is %d", r.Length, maxSize))
	}
	if chunks, ok := r.Body.(limited); ok && maxSize != ir.NoLimit {
		chunks.Limit(maxSize)
	}
	r.body = &body{namespace: r.Backend.Namespace(), length: r.Length, rest: &clientBody{
		source: r.Body, writer: r.Writer, maxSize: maxSize, length: r.Length, mayHaveTrailers: r.Trailers != nil,
		endIsSeparate: r.Major > 1,
		start:         time.Now(),
	}}
	if r.streams() {
		return nil
	}
	if err := r.body.read(); err != nil {
		return readFailed(r.gone(), err)
	}
	switch {
	case r.body.rest == nil:
		r.body.trailers = r.outgoingTrailers()
	case r.settings.speaksCGI() && r.body.length < 0:
		unmeasured.Add(1)
		return exchange.Fail(http.StatusServiceUnavailable, errNoLength)
	}
	return nil
}

// limited is implemented by bodies that can detect before their end that they exceed a limit.
type limited interface{ Limit(limit int64) }

// streams reports whether the body is sent while it arrives. FastCGI needs to know the length of the body, so it
// buffers bodies of unknown length.
func (r *request) streams() bool {
	return r.settings.StreamRequest && (!r.settings.speaksCGI() || r.Length >= 0)
}

// withoutRoom reports whether the body is streamed only because there was no room to buffer it. A slow client can hold
// the endpoint connection of such a request for long.
func (r *request) withoutRoom() bool { return r.body != nil && r.body.rest != nil && !r.streams() }

// read buffers the whole body, or the part for which there is room.
func (b *body) read() error {
	for b.buffer = small.Get(); !b.rest.ended.Load(); {
		if b.size == len(b.buffer.Bytes()) && !b.grow() {
			break
		}
		n, err := b.rest.Read(b.buffer.Bytes()[b.size:])
		if b.size += n; err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	if !b.rest.ended.Load() {
		var err error
		if b.file, err = newSpool(b.namespace); err != nil {
			return nil //nolint:nilerr // Without a file, the body is sent while it arrives.
		}
		if b.fileSize, b.overflow, err = b.file.fill(b.rest); err != nil || b.overflow != nil {
			return err
		}
	}
	b.length, b.rest = int64(b.size)+b.fileSize, nil
	return nil
}

// grow replaces the buffer by a larger one, if the budget allows it. It uses the buffer for long bodies only if the
// body may fit as a whole.
func (b *body) grow() bool {
	had := int64(len(b.buffer.Bytes()))
	if b.quota == nil {
		b.quota = bodyMemory().Share(b.namespace, "")
	}
	pool, more := bodyBuffers, int64(maxInMemory)
	switch {
	case had > maxWholeInMemory:
		return false
	case had > maxInMemory:
		pool, more = longBodyBuffers, maxWholeInMemory-maxInMemory
		if b.length > maxWholeInMemory || !b.quota.TakeSpare(more) {
			return false
		}
	case !b.quota.Take(more):
		return false
	}
	b.charged += more
	shorter := b.buffer.Move()
	b.buffer = pool.Get()
	copy(b.buffer.Bytes(), shorter.Bytes())
	shorter.Release()
	return true
}

// wholeInMemory returns the body if all of it is in memory.
func (b *body) wholeInMemory() (memory []byte, ok bool) {
	switch {
	case b == nil:
		return nil, true
	case b.rest != nil || b.file != nil || len(b.trailers) > 0:
		return nil, false
	}
	return b.buffer.Bytes()[:b.size], true
}

// shortInMemory is like wholeInMemory, but only for a body that can be sent before the response is read. A longer body
// is sent in another goroutine, since an endpoint may respond before it has read all of it.
func (b *body) shortInMemory() (memory []byte, ok bool) {
	memory, ok = b.wholeInMemory()
	if len(memory) > maxInMemory {
		return nil, false
	}
	return memory, ok
}

// framing returns the framing for the endpoint: chunked if the length is unknown or trailers may follow.
func (b *body) framing() (http1.Framing, int64) {
	switch {
	case b == nil || b.length == 0 && len(b.trailers) == 0:
		return http1.NoBody, 0
	case b.length < 0 || len(b.trailers) > 0 || b.rest != nil && b.rest.mayHaveTrailers:
		return http1.Chunked, -1
	}
	return http1.Sized, b.length
}

// reader returns a reader that starts at the beginning of the body, or nil if there is no body. The part that still
// comes from the client can be read only once.
func (b *body) reader() *bodyReader {
	if framing, _ := b.framing(); framing == http1.NoBody {
		return nil
	}
	var parts []io.Reader
	if b.buffer.Held() {
		parts = append(parts, bytes.NewReader(b.buffer.Bytes()[:b.size]))
	}
	if b.file != nil {
		parts = append(parts, io.NewSectionReader(b.file, 0, b.fileSize))
	}
	if b.rest == nil {
		return &bodyReader{source: io.MultiReader(parts...)}
	}
	parts = append(parts, bytes.NewReader(b.overflow), b.rest)
	return &bodyReader{source: io.MultiReader(parts...), rest: b.rest}
}

// canResend reports whether the whole body can still be sent to another endpoint. It returns an error if the client
// failed to send the whole body.
func (b *body) canResend() (bool, error) {
	switch {
	case b == nil || b.rest == nil:
		return true, nil
	case b.rest.failed.Load() != nil:
		return false, fmt.Errorf("%w: %w", errClientBody, *b.rest.failed.Load())
	}
	return !b.rest.forwarded.Load(), nil
}

// sentAt returns the time from which the response time of the endpoint is measured: the last read of the body that was
// sent to it. Zero means the start of the attempt. A slow client must not make an endpoint look slow.
func (b *body) sentAt() time.Time {
	if b == nil || b.rest == nil || !b.rest.forwarded.Load() {
		return time.Time{}
	}
	return b.rest.start.Add(time.Duration(b.rest.lastRead.Load()))
}

// arriving reports whether the client may still be sending the body.
func (b *body) arriving() bool { return b != nil && b.rest != nil && !b.rest.ended.Load() }

// release releases the buffer. The body must not be read afterwards. It is not called after a panic, because an upload
// may still be running.
func (b *body) release() {
	if b != nil {
		b.buffer.Release()
	}
}

// close closes the file and returns the memory to the budget. b may be nil.
func (b *body) close() {
	if b == nil {
		return
	}
	if b.file != nil {
		_ = b.file.Close()
	}
	if b.charged > 0 {
		b.quota.Give(b.charged)
	}
	b.charged = 0
}

// clientBody reads a body from the client. It can be read once.
type clientBody struct {
	source io.Reader
	writer message.Writer
	// maxSize is the maximum size, or ir.NoLimit. length is the size that the client has declared; a negative length is
	// unknown. size is the number of bytes read. All are in bytes.
	maxSize, length, size int64
	// mayHaveTrailers means that trailer fields may follow. They are available once the end has been read.
	mayHaveTrailers bool
	// endIsSeparate means that the end arrives separately from the last byte, as in HTTP/2 and HTTP/3. Until then the
	// body may still turn out to be longer than its length.
	endIsSeparate bool
	// forwarded means that a part of the body may have been sent to an endpoint. lastRead is the time of the last read,
	// in nanoseconds since start.
	start     time.Time
	lastRead  atomic.Int64
	forwarded atomic.Bool
	// ended means that the whole body has arrived. failed is the error with which the client failed to send it.
	ended  atomic.Bool
	failed atomic.Pointer[error]
}

var errTooLarge = errors.New("the request body exceeds the size limit")

// Read reads from the client.
func (i *clientBody) Read(b []byte) (int, error) {
	n, err := i.source.Read(b)
	i.size += int64(n)
	i.lastRead.Store(int64(time.Since(i.start)))
	switch {
	case i.maxSize != ir.NoLimit && i.size > i.maxSize:
		err = errTooLarge
	case errors.Is(err, io.EOF) && i.size < i.length:
		err = io.ErrUnexpectedEOF
	case errors.Is(err, io.EOF) || i.size == i.length && !i.mayHaveTrailers && !i.endIsSeparate:
		i.ended.Store(true)
	}
	return n, err
}

// bodyReader reads a body for one endpoint, possibly in another goroutine.
type bodyReader struct {
	source io.Reader
	rest   *clientBody
	// mu is held during a read, stopping during a call of stop. After stopped is set, nothing is read.
	mu, stopping sync.Mutex
	stopped      atomic.Bool
	// afterEnd means that the request had already ended when stop was called. It is set before stopped.
	afterEnd bool
}

var errStopped = errors.New("the request body is no longer read")

// Read implements io.Reader.
func (r *bodyReader) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped.Load() {
		return 0, errStopped
	}
	if r.rest != nil {
		// This is set before the read waits, since data that arrives during the wait is for this endpoint.
		r.rest.forwarded.Store(true)
		r.rest.lastRead.Store(int64(time.Since(r.rest.start)))
	}
	n, err := r.source.Read(b)
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case r.stopped.Load() && !r.timedOut(err):
		return n, errStopped
	case r.rest != nil:
		r.rest.failed.Store(&err)
	}
	return n, err
}

// timedOut reports whether a stopped read had failed before with a timeout of the client. net/http cancels the request
// before it returns that error, and the end of the request stops the read.
func (r *bodyReader) timedOut(err error) bool { return r.afterEnd && isTimeout(err) }

// stop ends the current read and makes later reads fail. afterEnd means that the request has already ended. Only the
// first call has an effect. When a call returns, no other call is running: afterwards the client's connection may be
// used for another request.
func (r *bodyReader) stop(afterEnd bool) {
	r.stopping.Lock()
	defer r.stopping.Unlock()
	if r.stopped.Load() {
		return
	}
	r.afterEnd = afterEnd
	r.stopped.Store(true)
	switch {
	case r.mu.TryLock():
		r.mu.Unlock()
	case r.rest != nil:
		// The client may be slow, so the read is interrupted.
		r.rest.writer.EndBody()
	}
}

// errClientBody means that the client did not send the body that its request head announced.
var errClientBody = errors.New("the client did not send the whole request body")

// readFailed returns the error for a client whose body could not be read.
func readFailed(gone, err error) error {
	status := http.StatusBadRequest
	var tooLarge *http.MaxBytesError
	var invalid *http1.Error
	switch {
	case errors.Is(err, errTooLarge) || errors.As(err, &tooLarge):
		status = http.StatusRequestEntityTooLarge
	case errors.As(err, &invalid):
		status = invalid.Status
	case isTimeout(err):
		// net/http also cancels the request in this case, so this case comes before gone.
		status = http.StatusRequestTimeout
	case gone != nil:
		status = clientGone
	}
	return exchange.Fail(status, fmt.Errorf("reading the request: %w", err))
}
