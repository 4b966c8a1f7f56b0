package httpserver

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/k8singress/k8singress/internal/http1"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/pools"
)

// writer writes the answers of one connection, one after another. A head waits for the body, or for the end of the handler, so that
// a short answer is one write.
type writer struct {
	c *conn
	// buffer is what has not been sent; it is taken from a pool.
	buffer []byte
	pooled pools.Buffer
	// vector is what goes out with one system call.
	vector [3][]byte
	out    net.Buffers

	// continued says that the client has been told to send its body.
	started, done, continued bool
	// bodiless says that the answer has no body, chunked that it comes in chunks, and left how many bytes of it are to come otherwise;
	// less than zero is any number.
	bodiless, chunked bool
	left              int64
	// sent is how many bytes of the body there have been.
	sent int64
	// closing says that the connection ends with the answer, and untilClose that the client knows the end of the body by that.
	closing, untilClose bool
	// err is what went wrong with the client.
	err error
}

var (
	errStarted    = errors.New("the head of the answer has been written already")
	errNotStarted = errors.New("the head of the answer has not been written")
	errTooMuch    = errors.New("the body of the answer is longer than its head says")
	errDone       = errors.New("the answer has ended")
	errAborted    = errors.New("the answer has been aborted")
)

// begin makes it ready for the next answer.
func (w *writer) begin() { *w = writer{c: w.c} }

// room makes sure that there is a buffer.
func (w *writer) room() {
	if !w.pooled.Held() {
		w.pooled = small.Get()
		w.buffer = w.pooled.Bytes()[:0]
	}
}

// release gives the buffer back.
func (w *writer) release() {
	if w.pooled.Held() {
		w.pooled.Release()
		w.buffer = nil
	}
}

// Sent is how many bytes of the body have been written.
func (w *writer) Sent() int64 { return w.sent }

// Started says whether a head has been written.
func (w *writer) Started() bool { return w.started }

// sayContinue tells the client to send its body, unless it has its answer.
func (w *writer) sayContinue() {
	w.c.heading.Lock()
	defer w.c.heading.Unlock()
	if !w.started && !w.continued && w.err == nil {
		_ = w.interim(&message.Response{Status: http.StatusContinue})
	}
}

// Interim writes an answer that is not the last. Clients of HTTP/1.0 do not know them.
func (w *writer) Interim(status int, fields message.Fields) error {
	w.c.heading.Lock()
	defer w.c.heading.Unlock()
	if w.err != nil || w.started || w.c.request.Minor == 0 {
		return w.err
	}
	w.continued = w.continued || status == http.StatusContinue
	return w.interim(&message.Response{Status: status, Fields: fields})
}

func (w *writer) interim(a *message.Response) (err error) {
	w.room()
	if w.buffer, err = http1.AppendResponseHead(w.buffer, a, new(http1.ResponseOptions)); err != nil {
		return err
	}
	return w.Flush()
}

// Head writes the head of the answer.
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
	http10 := w.c.request.Minor == 0
	options := http1.ResponseOptions{
		Close: w.closing, KeepAlive: http10 && !w.closing, HTTP10: http10, Chunked: w.chunked,
	}
	if a.Status >= http.StatusOK {
		options.Date = date()
	}
	w.room()
	if w.buffer, err = http1.AppendResponseHead(w.buffer, a, &options); err != nil {
		return err
	}
	w.started = true
	return nil
}

// frame decides how the body ends, and whether the connection ends with it.
func (w *writer) frame(a *message.Response) {
	c := w.c
	status := a.Status
	w.bodiless = c.request.Method == http.MethodHead || status < http.StatusOK || status == http.StatusNoContent || status == http.StatusNotModified
	w.left = a.Length
	unknown := a.Length < 0 && !w.bodiless
	w.chunked = unknown && c.request.Minor > 0
	w.untilClose = unknown && !w.chunked
	w.closing = w.closing || a.Close || w.untilClose || status == http.StatusSwitchingProtocols || c.isLast(a)
}

// isLast says whether the connection ends with an answer, whatever its body is.
func (c *conn) isLast(a *message.Response) bool {
	return !c.head.KeepAlive || c.server.closing.Load() || c.unreadBody() || a.Fields.HasToken(message.Connection, "close") ||
		c.options.KeepAliveRequests > 0 && c.requests >= c.options.KeepAliveRequests
}

// ready says whether a part of the body can be written.
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
	w.room()
	done := 0
	for ; len(part)-done > largest; done += largest {
		// Each piece has the whole time to be taken.
		if err := w.writeLarge(part[done : done+largest]); err != nil {
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

// largest is how much is written at once.
const largest = 128 << 10

var endOfChunk = []byte(http1.EndOfChunk)

// writeLarge sends a part without copying it, together with what is in the buffer.
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
		w.c.writes.extend(w.c.options.WriteTimeout)
		_, err = w.out.WriteTo(w.c.tcp)
		w.vector = [3][]byte{}
		w.buffer = w.buffer[:0]
	} else {
		if err = w.Flush(); err == nil {
			_, err = w.c.nc.Write(part)
		}
		if w.chunked {
			// It goes with what comes next.
			w.buffer = append(w.buffer, http1.EndOfChunk...)
		}
	}
	if err != nil {
		return w.fail(err)
	}
	return nil
}

// fail notes that the client takes nothing more.
func (w *writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && w.c.under != nil {
		// The kernel would keep for long what this client does not take.
		_ = w.c.under.SetLinger(0)
	}
	return w.err
}

// Flush sends what has been written.
func (w *writer) Flush() error {
	if w.err != nil || len(w.buffer) == 0 {
		return w.err
	}
	w.c.writes.extend(w.c.options.WriteTimeout)
	_, err := w.c.nc.Write(w.buffer)
	w.buffer = w.buffer[:0]
	if err != nil {
		return w.fail(err)
	}
	return nil
}

// ReadFrom writes what is read until its end. What comes from a bare TCP connection, or a part of it by an io.LimitedReader, goes to
// another one without a copy.
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

// Trailer ends the body with fields behind it. They are left out where the body does not come in chunks.
func (w *writer) Trailer(fields message.Fields) (err error) {
	if err := w.ready(0); err != nil {
		return err
	}
	if !w.chunked {
		return nil
	}
	// After an error the body is ended without them.
	w.buffer, err = http1.AppendLastChunk(w.buffer, fields)
	w.done = err == nil
	return err
}

// Abort ends the answer where it is.
func (w *writer) Abort() {
	if w.err != nil {
		return
	}
	w.err = errAborted
	if w.untilClose && w.c.under != nil {
		// An ordinary end would look like the end of the body.
		_ = w.c.under.SetLinger(0)
		_ = w.c.under.Close()
	}
}

// finish ends the answer, and returns whether another one may follow.
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
		// What there is of the answer may help.
		w.err = nil
		_ = w.Flush()
		w.err = errAborted
	}
	return w.Flush() == nil && !w.closing
}
