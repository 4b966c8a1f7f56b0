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
	// maxInMemory is the number of bytes of a request body that are buffered in memory, if the memory budget allows it.
	// The rest of a longer body is buffered in an unnamed temporary file.
	maxInMemory = 64 << 10
	// maxWholeInMemory is the maximum size, in bytes, of a body that is buffered in memory as a whole while plenty of
	// the memory budget is free. Buffering such a body in a file takes twice as much CPU time. The value is
	// ingress-nginx's default for proxy-body-size.
	maxWholeInMemory = 1 << 20
)

// bodyBuffers and longBodyBuffers are pools of buffers for request bodies. Each buffer is one byte larger than
// maxInMemory or maxWholeInMemory, so that a longer body is detected.
var (
	bodyBuffers     = pools.NewBuffers("proxy: body of 64 KiB", maxInMemory+1)
	longBodyBuffers = pools.NewBuffers("proxy: body of 1 MiB", maxWholeInMemory+1)
)

// body is a request body. It is either buffered, so that it can be sent again to another endpoint, or read from the
// client while it is sent.
type body struct {
	// namespace is the namespace of the backend. The memory and the file of the body count towards the limits of this
	// namespace.
	namespace string
	// buffer holds the first size bytes of the body. file holds the bytes that follow.
	buffer pools.Buffer
	size   int
	// quota is the namespace's share of the memory budget. charged is the number of bytes that this body has taken from
	// quota. quota is nil while the body fits into the first, small buffer.
	quota    *budget.Share
	charged  int64
	file     *spool
	fileSize int64
	// rest reads the part of the body that has not been read from the client yet. It is nil if the whole body is
	// buffered. overflow is data that was read from rest but could not be written to the file.
	rest     *clientBody
	overflow []byte
	// length is the length of the whole body in bytes. It is negative if the length is unknown. trailers are the
	// trailer fields. The field trailers is set only if the whole body is buffered.
	length   int64
	trailers message.Fields
}

// readBody buffers the request body before an endpoint is chosen, unless the body is streamed. If the body cannot be
// buffered completely, because memory and files are exhausted, the rest is read from the client while the body is sent
// to the endpoint.
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

// limited is implemented by request bodies that enforce a size limit, in bytes, while they are read.
type limited interface{ Limit(limit int64) }

// streams reports whether the body is sent to the endpoint while it arrives. For FastCGI, a body of unknown length is
// buffered instead, because FastCGI needs the length before the body.
func (r *request) streams() bool {
	return r.settings.StreamRequest && (!r.settings.speaksCGI() || r.Length >= 0)
}

// withoutRoom reports whether the body is streamed only because it could not be buffered completely, since the limits
// of memory and files have been reached. If the client is slow, such a request occupies its connection to the endpoint
// for a long time.
func (r *request) withoutRoom() bool { return r.body != nil && r.body.rest != nil && !r.streams() }

// read buffers the body, first in memory and then in a file. If the limits of memory and files are reached, b.rest
// reads the rest of the body from the client later.
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

// received returns the number of body bytes that were read from the client.
func (b *body) received() int64 {
	switch {
	case b == nil:
		return 0
	case b.rest != nil:
		return b.rest.size.Load()
	}
	return b.length
}

// grow replaces the buffer with a larger one. It returns false if the memory budget does not allow it. A buffer from
// longBodyBuffers is used only if the whole body may fit into it.
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

// wholeInMemory returns the bytes of the body if all of them are in memory. Otherwise ok is false. For a request
// without a body it returns nil and true.
func (b *body) wholeInMemory() (memory []byte, ok bool) {
	switch {
	case b == nil:
		return nil, true
	case b.rest != nil || b.file != nil || len(b.trailers) > 0:
		return nil, false
	}
	return b.buffer.Bytes()[:b.size], true
}

// shortInMemory is like wholeInMemory, but ok is also false if the body is longer than maxInMemory. Such a body is sent
// by another goroutine, since an endpoint may respond before it has read the whole body.
func (b *body) shortInMemory() (memory []byte, ok bool) {
	memory, ok = b.wholeInMemory()
	if len(memory) > maxInMemory {
		return nil, false
	}
	return memory, ok
}

// framing returns the framing of the body in the request to the endpoint, and the length of the body. If the length is
// unknown, or trailers may follow, the framing is chunked and the length -1.
func (b *body) framing() (http1.Framing, int64) {
	switch {
	case b == nil || b.length == 0 && len(b.trailers) == 0:
		return http1.NoBody, 0
	case b.length < 0 || len(b.trailers) > 0 || b.rest != nil && b.rest.mayHaveTrailers:
		return http1.Chunked, -1
	}
	return http1.Sized, b.length
}

// reader returns a reader that starts at the beginning of the body, or nil if there is no body. The part that has not
// been read from the client yet can be read only once.
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

// sentAt returns the time from which the response time of the endpoint is measured. For a streamed body, this is the
// time of the last read from the client, so that a slow client does not make the endpoint look slow. Otherwise sentAt
// returns the zero time, which stands for the start of the attempt.
func (b *body) sentAt() time.Time {
	if b == nil || b.rest == nil || !b.rest.forwarded.Load() {
		return time.Time{}
	}
	return b.rest.start.Add(time.Duration(b.rest.lastRead.Load()))
}

// arriving reports whether a part of the body has not been read from the client yet.
func (b *body) arriving() bool { return b != nil && b.rest != nil && !b.rest.ended.Load() }

// release returns the buffer to its pool. The body must not be read afterwards. release is not called after a panic,
// because the goroutine that sends the body may still use the buffer.
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

// clientBody reads a request body from the client. The body can be read only once.
type clientBody struct {
	source io.Reader
	writer message.Writer
	// maxSize is the maximum size of the body, or ir.NoLimit. length is the size that the client has declared; it is
	// negative if the client has not declared it. size is the number of bytes read so far. All are in bytes.
	maxSize, length int64
	// size is atomic because another goroutine may still read the body when the request ends.
	size atomic.Int64
	// mayHaveTrailers is true if trailer fields may follow the body. They are available once the end of the body has
	// been read.
	mayHaveTrailers bool
	// endIsSeparate is true if the end of the body arrives separately from the last byte, as in HTTP/2 and HTTP/3.
	// Until the end arrives, the body may still turn out to be longer than its Content-Length.
	endIsSeparate bool
	// start is the time at which the clientBody was created. lastRead is the time of the last read from the client, in
	// nanoseconds since start. forwarded is true if a part of the body may have been sent to an endpoint.
	start     time.Time
	lastRead  atomic.Int64
	forwarded atomic.Bool
	// ended is true once the whole body has been read. failed is the error of reading the body from the client, or nil.
	ended  atomic.Bool
	failed atomic.Pointer[error]
}

var errTooLarge = errors.New("the request body exceeds the size limit")

// Read reads from the client.
func (i *clientBody) Read(b []byte) (int, error) {
	n, err := i.source.Read(b)
	size := i.size.Add(int64(n))
	i.lastRead.Store(int64(time.Since(i.start)))
	switch {
	case i.maxSize != ir.NoLimit && size > i.maxSize:
		err = errTooLarge
	case errors.Is(err, io.EOF) && size < i.length:
		err = io.ErrUnexpectedEOF
	case errors.Is(err, io.EOF) || size == i.length && !i.mayHaveTrailers && !i.endIsSeparate:
		i.ended.Store(true)
	}
	return n, err
}

// bodyReader reads the request body for one attempt to send it to an endpoint. The reads may happen in another
// goroutine.
type bodyReader struct {
	source io.Reader
	rest   *clientBody
	// mu is held during Read, and stopping is held during the method stop. Once stopped is true, Read returns
	// errStopped.
	mu, stopping sync.Mutex
	stopped      atomic.Bool
	// afterEnd is true if the context of the request had already ended when the method stop was called. It is set
	// before stopped.
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
		// Set forwarded before the read. The read may block, and its data is for this endpoint, so the body must no
		// longer be sent to another endpoint.
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

// timedOut reports whether a read failed because the client was too slow, and not because stop was called. After a
// timeout, net/http cancels the request before the read returns, so that stop is called with afterEnd set. So a timeout
// error with afterEnd set means that the client was too slow.
func (r *bodyReader) timedOut(err error) bool { return r.afterEnd && isTimeout(err) }

// stop interrupts a read in progress and makes later reads fail. afterEnd is true if the context of the request has
// already ended. Only the first call has an effect. Concurrent calls wait until the first call has returned, so that it
// cannot interrupt the next request on the client's connection.
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
		// Interrupt the read in progress, because it may wait for a slow client.
		r.rest.writer.EndBody()
	}
}

// errClientBody means that the client did not send the complete request body.
var errClientBody = errors.New("the client did not send the whole request body")

// readFailed returns the error, with the status code for the client, for a request body that could not be read because
// of err. gone is the reason why the client has disconnected, or nil if it is still connected.
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
		// After a timeout, net/http also cancels the request, so that gone is not nil. Therefore check for a timeout
		// first.
		status = http.StatusRequestTimeout
	case gone != nil:
		status = exchange.ClientGone
	}
	return exchange.Fail(status, fmt.Errorf("reading the request: %w", err))
}
