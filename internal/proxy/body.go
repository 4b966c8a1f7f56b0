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

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/http1"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/pools"
)

const (
	// inMemory is how much of a body is held in memory, where there is room. What is longer goes into a file that has no name.
	inMemory = 64 << 10
	// mostInMemory is how long a body may be that stands in memory as a whole, where there is room to spare: a file costs twice as much. It
	// is what ingress-nginx allows without proxy-body-size.
	mostInMemory = 1 << 20
)

// whole and longer have room for a body that stands in memory, and for the byte behind it that says it is too long.
var (
	whole  = pools.NewBuffers("proxy: body of 64 KiB", inMemory+1)
	longer = pools.NewBuffers("proxy: body of 1 MiB", mostInMemory+1)
)

// body is that of a request. It is kept, so that another endpoint can get it when one fails; or it comes in while it is sent.
type body struct {
	// namespace is the namespace of the backend, which the memory and the file count for.
	namespace string
	// buffer has the beginning, size bytes of it, and file the rest.
	buffer pools.Buffer
	size   int
	// room is the namespace's account of memory, and taken is how many bytes the body has taken from it. room is nil
	// while the body is short.
	room  *budget.Share
	taken int64
	file  *spool
	filed int64
	// rest is what comes from the client behind that; nil is that all is there. found is what was read of it already.
	rest  *incoming
	found []byte
	// length is that of all of it; less than zero is not known. trailers are the fields behind a body that is all there.
	length   int64
	trailers message.Fields
}

// takeBody reads all of the body before an endpoint is asked, unless the settings say otherwise. Without a place for a file the rest
// of a long body is left to come in as it does.
func (r *request) takeBody() error {
	if r.Body == nil || r.Length == 0 {
		return nil
	}
	if r.LiftPause != nil && speaksGRPC(r.protocol) {
		r.LiftPause()
	}
	most := r.settings.MaxBody
	if most != ir.NoLimit && r.Length > most {
		return exchange.Fail(http.StatusRequestEntityTooLarge, fmt.Errorf("the body has %d bytes, and %d are allowed", r.Length, most))
	}
	if chunks, ok := r.Body.(limited); ok && most != ir.NoLimit {
		chunks.Limit(most)
	}
	r.body = &body{namespace: r.Backend.Namespace(), length: r.Length, rest: &incoming{
		source: r.Body, writer: r.Writer, most: most, length: r.Length, trailed: r.Trailers != nil, framed: r.Major > 1, begun: time.Now(),
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

// limited is a body that may know before all of it has come that it is larger than it may be.
type limited interface{ Limit(most int64) }

// streams says whether the body is sent on as it comes in. FastCGI has to know its length.
func (r *request) streams() bool {
	return r.settings.StreamRequest && (!r.settings.speaksCGI() || r.Length >= 0)
}

// withoutRoom reports whether the body comes in while it is sent only because there was no room to keep it. Clients
// that send slowly decide for how long such a request keeps its connection to an endpoint.
func (r *request) withoutRoom() bool { return r.body != nil && r.body.rest != nil && !r.streams() }

// read reads all of the body, or as much as there is room for.
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
			return nil //nolint:nilerr // Without a file, the body goes on as it comes in.
		}
		if b.filed, b.found, err = b.file.fill(b.rest); err != nil || b.found != nil {
			return err
		}
	}
	b.length, b.rest = int64(b.size)+b.filed, nil
	return nil
}

// grow takes a larger buffer for what stands in memory, if there is room for it. One for a long body is taken only where it may hold all.
func (b *body) grow() bool {
	had := int64(len(b.buffer.Bytes()))
	if b.room == nil {
		b.room = bodyMemory().Share(b.namespace, "")
	}
	pool, taken := whole, int64(inMemory)
	switch {
	case had > mostInMemory:
		return false
	case had > inMemory:
		pool, taken = longer, mostInMemory-inMemory
		if b.length > mostInMemory || !b.room.TakeSpare(taken) {
			return false
		}
	case !b.room.Take(taken):
		return false
	}
	b.taken += taken
	shorter := b.buffer.Move()
	b.buffer = pool.Get()
	copy(b.buffer.Bytes(), shorter.Bytes())
	shorter.Release()
	return true
}

// kept is what stands in memory, if that is all of the body.
func (b *body) kept() (memory []byte, ok bool) {
	switch {
	case b == nil:
		return nil, true
	case b.rest != nil || b.file != nil || len(b.trailers) > 0:
		return nil, false
	}
	return b.buffer.Bytes()[:b.size], true
}

// short is kept for a body that goes out before an answer is waited for: an endpoint may answer before it has read a longer one.
func (b *body) short() (memory []byte, ok bool) {
	memory, ok = b.kept()
	if len(memory) > inMemory {
		return nil, false
	}
	return memory, ok
}

// framing is how the body goes out: in chunks if its length is not known, or if fields may follow.
func (b *body) framing() (http1.Framing, int64) {
	switch {
	case b == nil || b.length == 0 && len(b.trailers) == 0:
		return http1.NoBody, 0
	case b.length < 0 || len(b.trailers) > 0 || b.rest != nil && b.rest.trailed:
		return http1.Chunked, -1
	}
	return http1.Sized, b.length
}

// reader reads the body from its beginning. What is left of one that comes in can be read once. It is nil without a body.
func (b *body) reader() *reading {
	if framing, _ := b.framing(); framing == http1.NoBody {
		return nil
	}
	var parts []io.Reader
	if b.buffer.Held() {
		parts = append(parts, bytes.NewReader(b.buffer.Bytes()[:b.size]))
	}
	if b.file != nil {
		parts = append(parts, io.NewSectionReader(b.file, 0, b.filed))
	}
	if b.rest == nil {
		return &reading{source: io.MultiReader(parts...)}
	}
	parts = append(parts, bytes.NewReader(b.found), b.rest)
	return &reading{source: io.MultiReader(parts...), rest: b.rest}
}

// again says whether another endpoint could have the body, too. An error is that of a client who does not send all of it.
func (b *body) again() (bool, error) {
	switch {
	case b == nil || b.rest == nil:
		return true, nil
	case b.rest.failed.Load() != nil:
		return false, fmt.Errorf("%w: %w", errBroken, *b.rest.failed.Load())
	}
	return !b.rest.spent.Load(), nil
}

// asked is since when the endpoint has had all that it may answer to; zero is from the start. A client that sends slowly does not
// make an endpoint slow.
func (b *body) asked() time.Time {
	if b == nil || b.rest == nil || !b.rest.spent.Load() {
		return time.Time{}
	}
	return b.rest.begun.Add(time.Duration(b.rest.taken.Load()))
}

// arriving says whether the client may still send.
func (b *body) arriving() bool { return b != nil && b.rest != nil && !b.rest.ended.Load() }

// release gives the buffer back. Nothing may read the body any more. After a panic it is not called, because an upload may go on.
func (b *body) release() {
	if b != nil {
		b.buffer.Release()
	}
}

// close closes the file, and gives back the room that the body has taken. b may be nil.
func (b *body) close() {
	if b == nil {
		return
	}
	if b.file != nil {
		_ = b.file.Close()
	}
	if b.taken > 0 {
		b.room.Give(b.taken)
	}
	b.taken = 0
}

// incoming is a body as it comes from the client. It can be read once.
type incoming struct {
	source io.Reader
	writer message.Writer
	// most is how much may come, or ir.NoLimit; length is how much the client has said, less than zero for nothing. size has come.
	most, length, size int64
	// trailed says that fields may follow, which are there when the end has been read.
	trailed bool
	// framed says that the end comes apart from the last byte, as in HTTP/2 and HTTP/3: until then the body may be longer than its length.
	framed bool
	// spent says that a part has gone to an endpoint, or may have. taken is when the last part came, counted from begun.
	begun time.Time
	taken atomic.Int64
	spent atomic.Bool
	// ended says that all has come. failed is how the client failed to send it.
	ended  atomic.Bool
	failed atomic.Pointer[error]
}

var errTooLarge = errors.New("the body is larger than is allowed")

// Read reads from the client.
func (i *incoming) Read(b []byte) (int, error) {
	n, err := i.source.Read(b)
	i.size += int64(n)
	i.taken.Store(int64(time.Since(i.begun)))
	switch {
	case i.most != ir.NoLimit && i.size > i.most:
		err = errTooLarge
	case errors.Is(err, io.EOF) && i.size < i.length:
		err = io.ErrUnexpectedEOF
	case errors.Is(err, io.EOF) || i.size == i.length && !i.trailed && !i.framed:
		i.ended.Store(true)
	}
	return n, err
}

// reading reads a body for one endpoint, in a goroutine of its own.
type reading struct {
	source io.Reader
	rest   *incoming
	// mu is held while it reads. stopped says that nothing may be read any more.
	mu, halting sync.Mutex
	stopped     atomic.Bool
	// late says that the request had ended before it was stopped. It is set before stopped is.
	late bool
}

var errStopped = errors.New("the body is not wanted any more")

// Read is io.Reader.
func (r *reading) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped.Load() {
		return 0, errStopped
	}
	if r.rest != nil {
		// Before it waits: what comes in then is for this endpoint.
		r.rest.spent.Store(true)
		r.rest.taken.Store(int64(time.Since(r.rest.begun)))
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

// timedOut says that a read which has been stopped had failed before, because the client has sent nothing for too long: net/http ends the
// request before it returns that error, and the end of the request is what stops the read then.
func (r *reading) timedOut(err error) bool { return r.late && isTimeout(err) }

// halt has it read nothing more; late says that the request has ended already. After the first call it has no effect, and none is under
// way when one has returned: the client may be about to send another request.
func (r *reading) halt(late bool) {
	r.halting.Lock()
	defer r.halting.Unlock()
	if r.stopped.Load() {
		return
	}
	r.late = late
	r.stopped.Store(true)
	switch {
	case r.mu.TryLock():
		r.mu.Unlock()
	case r.rest != nil:
		// The client may take its time.
		r.rest.writer.EndBody()
	}
}

// errBroken is for a body that the client does not send as it should.
var errBroken = errors.New("the body of the request breaks off")

// readFailed tells what became of a client that does not send what it said.
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
		// net/http takes it for the end of the client, so this comes first.
		status = http.StatusRequestTimeout
	case gone != nil:
		status = clientGone
	}
	return exchange.Fail(status, fmt.Errorf("reading the request: %w", err))
}
