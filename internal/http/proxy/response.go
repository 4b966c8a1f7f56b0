package proxy

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
)

// readHead reads a response head of at most the given number of bytes and returns its size.
func (c *conn) readHead(method string, limit int) (int, error) {
	scanner := http1.Scanner{Response: true}
	for {
		if len(c.buffered()) > 0 {
			head, end, err := scanner.Find(c.buffered())
			switch {
			case err != nil:
				return 0, err
			case head != nil:
				c.at += end
				return end, c.head.Parse(head, method, &c.response)
			case len(c.buffered()) >= limit:
				return 0, http1.ErrHeadTooLarge
			}
		}
		if err := c.fill(); err != nil {
			return 0, fmt.Errorf("reading the response: %w", err)
		}
	}
}

// forget releases the buffer of the last request, and clears the header fields of the request and its response.
func (c *conn) forget() {
	c.buffer.Release()
	clear(c.response.Fields[:cap(c.response.Fields)])
	clear(c.fields[:cap(c.fields)])
	c.body = responseBody{}
}

// responseBody reads the body of a response.
type responseBody struct {
	c       *conn
	framing http1.Framing
	// left is the number of body bytes that have not been read yet, if the length of the body is known.
	left   int64
	chunks http1.Decoder
	ended  bool
	// flushes is the writer to the client. It is flushed before a read waits for more data. If it is nil, data may stay
	// buffered.
	flushes message.Writer
}

// begin prepares b to read the body of the response whose head was read last from c.
func (b *responseBody) begin(c *conn) {
	*b = responseBody{c: c, framing: c.head.Framing, left: c.response.Length}
	b.ended = b.framing == http1.NoBody
}

func (b *responseBody) stop() { b.c.interrupt() }

// Read implements io.Reader.
func (b *responseBody) Read(to []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	if b.framing == http1.Chunked {
		return b.readChunks(to)
	}
	if b.framing == http1.Sized {
		to = to[:min(int64(len(to)), b.left)]
	}
	n, err := b.readSome(to)
	b.left -= int64(n)
	switch {
	case b.framing == http1.UntilClose:
		b.ended = errors.Is(err, io.EOF)
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	case b.left == 0:
		b.ended = true
	}
	return n, err
}

// readSome reads from the connection's buffer if that contains data, otherwise directly from the connection.
func (b *responseBody) readSome(to []byte) (int, error) {
	in := b.c.buffered()
	if len(in) == 0 {
		if err := flush(b.flushes); err != nil {
			return 0, err
		}
		return b.c.read(to)
	}
	n := copy(to, in)
	b.c.at += n
	return n, nil
}

// readChunks reads a chunked body. It waits for data and then reads as much as is available.
func (b *responseBody) readChunks(to []byte) (n int, _ error) {
	for n < len(to) && (n == 0 || len(b.c.buffered()) > 0) {
		if len(b.c.buffered()) == 0 {
			if err := flush(b.flushes); err != nil {
				return 0, err
			}
			if err := b.c.fill(); errors.Is(err, io.EOF) {
				return 0, io.ErrUnexpectedEOF
			} else if err != nil {
				return 0, err
			}
		}
		in := b.c.buffered()
		data, consumed, done, err := b.chunks.Next(in[:min(len(in), len(to)-n)])
		n += copy(to[n:], data)
		b.c.at += consumed
		switch {
		case err != nil:
			return n, err
		case done:
			b.ended = true
			return n, io.EOF
		}
	}
	return n, nil
}

// forwardBody forwards the body of a response to the client.
func (r *request) forwardBody(c *conn) error {
	b := &c.body
	switch in := c.buffered(); {
	case b.ended:
		return nil
	case b.framing == http1.Sized && int64(len(in)) >= b.left:
		// The whole body arrived with the head, so write it to the client at once.
		n := int(b.left)
		c.at += n
		return r.write(in[:n])
	case b.framing == http1.Sized && b.left-int64(len(in)) >= minSpliced && r.splices(c):
		return r.splice(c)
	}
	if r.flushes(&c.response) {
		b.flushes = r.Writer
	} else if r.settings.BufferResponse {
		// Another goroutine reads and buffers the response. Call watch, because reads of that goroutine can only be
		// interrupted after a call of watch.
		c.watch()
	}
	if err := r.copy(b, c.response.Length); err != nil {
		return err
	}
	if trailers := b.chunks.Trailers(); len(trailers) > 0 {
		return clientWriteError(r.Writer.Trailer(trailers))
	}
	return nil
}

// flushes reports whether each part of a response body is flushed to the client as soon as it arrives. It returns true
// for bodies of unknown length and for event streams, unless responses are buffered.
func (r *request) flushes(a *message.Response) bool {
	return !r.settings.BufferResponse &&
		(a.Length < 0 || strings.HasPrefix(a.Fields.Get(message.ContentType), "text/event-stream"))
}

// source is the body of a response. stop ends a read that is in progress in another goroutine.
type source interface {
	io.Reader
	stop()
}

// copy copies a body of the given length to the client. A negative length means that the length is unknown.
func (r *request) copy(from source, length int64) error {
	buffer := large.Get()
	err := r.copyWith(buffer.Bytes(), from, length)
	buffer.Release()
	return err
}

func (r *request) copyWith(buffer []byte, from source, length int64) error {
	reader := io.Reader(from)
	if r.settings.BufferResponse && (length < 0 || length > int64(len(buffer))) {
		buffered := newResponseBuffer(r.Backend.Namespace(), from)
		defer buffered.close(from.stop)
		reader = buffered
	}
	for {
		n, err := reader.Read(buffer)
		if n > 0 {
			if err := r.write(buffer[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// flush flushes w. It does nothing if w is nil.
func flush(w message.Writer) error {
	if w == nil {
		return nil
	}
	return clientWriteError(w.Flush())
}

func (r *request) write(part []byte) error {
	_, err := r.Writer.Write(part)
	return clientWriteError(err)
}

// clientWriteError wraps an error of writing to the client in errClientWrite, to distinguish it from errors of
// endpoints.
func clientWriteError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errClientWrite, err)
}
