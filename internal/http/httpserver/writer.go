package httpserver

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/pools"
)

// writer writes the responses of a connection, one after another. A response head is buffered until the body is written
// or the handler returns, so that a short response is sent with a single write.
type writer struct {
	c *Conn
	// buffer holds the data that was not sent yet. It uses the memory of pooled, which comes from a pool.
	buffer []byte
	pooled pools.Buffer
	// vector holds the slices that are sent with a single system call.
	vector [3][]byte
	out    net.Buffers

	// toHead is true for a HEAD request, and http10 for an HTTP/1.0 request. Both are set before the handler runs,
	// because Caddy handlers may change the method of the request.
	toHead, http10 bool
	// started is true after the response head was written, done after the end of the response or after Switch, and
	// continued after 100 Continue was sent.
	started, done, continued bool
	// bodiless is true if the response has no body, and chunked if the body is chunked. For other responses, left is
	// the number of body bytes that the handler must still write, or negative if the length of the body is not known.
	bodiless, chunked bool
	left              int64
	// sent is the number of body bytes that the handler has written.
	sent int64
	// closing is true if the connection must be closed after the response. untilClose is true if the end of the
	// connection marks the end of the body.
	closing, untilClose bool
	// err is the first error of a write to the client connection. Further writes return it.
	err error
}

var (
	errStarted    = errors.New("the head of the response has already been written")
	errNotStarted = errors.New("the head of the response has not been written")
	errTooMuch    = errors.New("the response body is longer than its Content-Length")
	errDone       = errors.New("the response has ended")
	errAborted    = errors.New("the response has been aborted")
)

// begin resets the writer for the next response.
func (w *writer) begin() {
	request := &w.c.request
	*w = writer{c: w.c, toHead: request.Method == http.MethodHead, http10: request.Minor == 0}
}

// ensureBuffer gets a buffer from the pool if the writer has no buffer yet.
func (w *writer) ensureBuffer() {
	if !w.pooled.Held() {
		w.pooled = small.Get()
		w.buffer = w.pooled.Bytes()[:0]
	}
}

// release returns the buffer to the pool.
func (w *writer) release() {
	if w.pooled.Held() {
		w.pooled.Release()
		w.buffer = nil
	}
}

// Sent returns the number of body bytes that the handler has written.
func (w *writer) Sent() int64 { return w.sent }

// Started reports whether the response head was written.
func (w *writer) Started() bool { return w.started }

// sendContinue sends 100 Continue, unless the response has already started.
func (w *writer) sendContinue() {
	w.c.heading.Lock()
	defer w.c.heading.Unlock()
	if !w.started && !w.continued && w.err == nil {
		_ = w.interim(&message.Response{Status: http.StatusContinue})
	}
}

// Interim writes an interim response. It writes nothing to HTTP/1.0 clients, which do not support interim responses.
func (w *writer) Interim(status int, fields message.Fields) error {
	w.c.heading.Lock()
	defer w.c.heading.Unlock()
	if w.err != nil || w.started || w.http10 {
		return w.err
	}
	w.continued = w.continued || status == http.StatusContinue
	return w.interim(&message.Response{Status: status, Fields: fields})
}

func (w *writer) interim(a *message.Response) (err error) {
	w.ensureBuffer()
	if w.buffer, err = http1.AppendResponseHead(w.buffer, a, new(http1.ResponseOptions)); err != nil {
		return err
	}
	return w.Flush()
}

// Head writes the head of the response to the buffer.
func (w *writer) Head(a *message.Response) (err error) {
	w.c.heading.Lock()
	defer w.c.heading.Unlock()
	switch {
	case w.err != nil:
		return w.err
	case w.started:
		return errStarted
	}
	w.frame(a)
	options := http1.ResponseOptions{
		Close: w.closing, KeepAlive: w.http10 && !w.closing, HTTP10: w.http10, Chunked: w.chunked,
	}
	if a.Status >= http.StatusOK {
		options.Date = date()
	}
	w.ensureBuffer()
	if w.buffer, err = http1.AppendResponseHead(w.buffer, a, &options); err != nil {
		return err
	}
	w.started = true
	return nil
}

// frame determines how the end of the response body is marked, and whether the connection must be closed after the
// response.
func (w *writer) frame(a *message.Response) {
	c := w.c
	status := a.Status
	w.bodiless = w.toHead || status < http.StatusOK || status == http.StatusNoContent ||
		status == http.StatusNotModified
	w.left = a.Length
	unknown := a.Length < 0 && !w.bodiless
	w.chunked = unknown && !w.http10
	w.untilClose = unknown && !w.chunked
	w.closing = w.closing || a.Close || w.untilClose || status == http.StatusSwitchingProtocols || c.isLast(a)
}

// isLast reports whether the connection must be closed after the response. It does not consider whether the end of the
// connection marks the end of the response body.
func (c *Conn) isLast(a *message.Response) bool {
	return !c.head.KeepAlive || c.closing.Load() || c.unreadBody() ||
		a.Fields.HasToken(message.Connection, "close") || c.limits.Last(c.requests)
}

// ready returns an error if the handler must not write n more bytes of the body, for example because the response has
// ended.
func (w *writer) ready(n int) error {
	switch {
	case w.err != nil:
		return w.err
	case !w.started:
		return errNotStarted
	case w.done:
		return errDone
	case !w.bodiless && w.left >= 0 && int64(n) > w.left:
		return errTooMuch
	}
	return nil
}

// Write writes a part of the body.
func (w *writer) Write(part []byte) (int, error) {
	if err := w.ready(len(part)); err != nil {
		return 0, err
	}
	if w.bodiless || len(part) == 0 {
		return len(part), nil
	}
	if w.sent += int64(len(part)); w.left >= 0 {
		w.left -= int64(len(part))
	}
	w.ensureBuffer()
	done := 0
	for ; len(part)-done > maxWrite; done += maxWrite {
		// Write large parts in pieces, because the write deadline applies to each piece.
		if err := w.writeLarge(part[done : done+maxWrite]); err != nil {
			return done, err
		}
	}
	rest := part[done:]
	if len(w.buffer)+len(rest)+http1.ChunkHeadSize+2*len(http1.EndOfChunk) > cap(w.buffer) {
		if err := w.writeLarge(rest); err != nil {
			return done, err
		}
		return len(part), nil
	}
	if w.chunked {
		w.buffer = http1.AppendChunkHead(w.buffer, len(rest))
	}
	w.buffer = append(w.buffer, rest...)
	if w.chunked {
		w.buffer = append(w.buffer, http1.EndOfChunk...)
	}
	return len(part), nil
}

// maxWrite is the maximum number of bytes of a single write to the connection.
const maxWrite = 128 << 10

var endOfChunk = []byte(http1.EndOfChunk)

// writeLarge sends the buffered data and a part of the body, without copying the part into the buffer.
func (w *writer) writeLarge(part []byte) error {
	if len(w.buffer)+http1.ChunkHeadSize > cap(w.buffer) {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if w.chunked {
		w.buffer = http1.AppendChunkHead(w.buffer, len(part))
	}
	var err error
	if w.c.tcp != nil {
		w.vector = [...][]byte{w.buffer, part, nil}
		if w.out = w.vector[:2]; w.chunked {
			w.vector[2] = endOfChunk
			w.out = w.vector[:3]
		}
		w.c.writes.extend(w.c.limits.Send)
		_, err = w.out.WriteTo(w.c.tcp)
		w.vector = [3][]byte{}
		w.buffer = w.buffer[:0]
	} else {
		if err = w.Flush(); err == nil {
			// Flush extends the deadline only if the buffer has data.
			w.c.writes.extend(w.c.limits.Send)
			_, err = w.c.nc.Write(part)
		}
		if w.chunked {
			// Put the end of the chunk into the buffer. The next write sends it.
			w.buffer = append(w.buffer, http1.EndOfChunk...)
		}
	}
	if err != nil {
		return w.fail(err)
	}
	return nil
}

// fail stores err if it is the first error of the client connection. It returns the first error.
func (w *writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && w.c.lowerTCP != nil {
		// The client is too slow. Discard the unsent data when the connection is closed; otherwise the kernel would
		// keep it for a long time.
		_ = w.c.lowerTCP.SetLinger(0)
	}
	return w.err
}

// Flush sends the buffered data.
func (w *writer) Flush() error {
	if w.err != nil || len(w.buffer) == 0 {
		return w.err
	}
	w.c.writes.extend(w.c.limits.Send)
	_, err := w.c.nc.Write(w.buffer)
	w.buffer = w.buffer[:0]
	if err != nil {
		return w.fail(err)
	}
	return nil
}

// ReadFrom writes everything that it reads from source until EOF. If source is an io.LimitedReader of a plaintext TCP
// connection, and the client uses plaintext TCP too, the kernel may copy the data.
func (w *writer) ReadFrom(source io.Reader) (int64, error) {
	if err := w.ready(0); err != nil {
		return 0, err
	}
	if w.bodiless {
		return io.Copy(io.Discard, source)
	}
	if n, done, err := w.splice(source); done {
		w.sent += n
		return n, err
	}
	return w.copyFrom(source)
}

func (w *writer) copyFrom(source io.Reader) (int64, error) {
	space := large.Get()
	done, err := w.copyWith(space.Bytes(), source)
	space.Release()
	return done, err
}

func (w *writer) copyWith(space []byte, source io.Reader) (done int64, err error) {
	for {
		n, err := source.Read(space)
		if n > 0 {
			if _, err := w.Write(space[:n]); err != nil {
				return done, err
			}
			done += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return done, nil
		case err != nil:
			return done, err
		}
	}
}

// Trailer ends the body with trailer fields. If the body is not chunked, it does nothing, because only chunked bodies
// can have trailers.
func (w *writer) Trailer(fields message.Fields) (err error) {
	if err := w.ready(0); err != nil {
		return err
	}
	if !w.chunked {
		return nil
	}
	// If AppendLastChunk fails, the body is not done, and finish ends it without trailer fields.
	w.buffer, err = http1.AppendLastChunk(w.buffer, fields)
	w.done = err == nil
	return err
}

// Abort ends the response early, so that the client notices that it is incomplete.
func (w *writer) Abort() {
	if w.err != nil {
		return
	}
	w.err = errAborted
	if w.untilClose && w.c.lowerTCP != nil {
		// Reset the connection: the client would take an ordinary close for the end of the body.
		_ = w.c.lowerTCP.SetLinger(0)
		_ = w.c.lowerTCP.Close()
	}
}

// finish ends the response. It returns true if the connection can serve another request.
func (w *writer) finish() bool {
	more := w.end()
	w.release()
	return more
}

func (w *writer) end() bool {
	if !w.started && w.err == nil {
		_ = w.Head(&message.Response{Status: http.StatusInternalServerError})
	}
	if w.err == nil && !w.bodiless && w.left > 0 {
		w.Abort()
	}
	if w.err == nil && w.chunked && !w.done {
		w.buffer, _ = http1.AppendLastChunk(w.buffer, nil)
	}
	if errors.Is(w.err, errAborted) && w.started && !w.untilClose {
		// Clear the error and send the buffered data, because the client may be able to use an incomplete response.
		w.err = nil
		_ = w.Flush()
		w.err = errAborted
	}
	return w.Flush() == nil && !w.closing
}
