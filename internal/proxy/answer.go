package proxy

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/k8singress/k8singress/internal/http1"
	"github.com/k8singress/k8singress/internal/message"
)

// readHead reads a head of at most so many bytes, and returns how many there were.
func (c *conn) readHead(method string, most int) (int, error) {
	scanner := http1.Scanner{Response: true}
	for {
		if len(c.buffered()) > 0 {
			head, end, err := scanner.Find(c.buffered())
			switch {
			case err != nil:
				return 0, err
			case head != nil:
				c.at += end
				return end, c.head.Parse(head, method, &c.answer)
			case len(c.buffered()) >= most:
				return 0, http1.ErrHeadTooLarge
			}
		}
		if err := c.fill(); err != nil {
			return 0, fmt.Errorf("reading the answer: %w", err)
		}
	}
}

// forget lets go of the memory of the last request.
func (c *conn) forget() {
	c.buffer.Release()
	clear(c.answer.Fields[:cap(c.answer.Fields)])
	clear(c.fields[:cap(c.fields)])
	c.body = answerBody{}
}

// answerBody is what is left of the body of an answer.
type answerBody struct {
	c       *conn
	framing http1.Framing
	// left is for a body with a length.
	left   int64
	chunks http1.Decoder
	ended  bool
	// flushes sends what has been written before it waits for more; nil is that this has time.
	flushes message.Writer
}

// begin is at the body behind the head that was read last.
func (b *answerBody) begin(c *conn) {
	*b = answerBody{c: c, framing: c.head.Framing, left: c.answer.Length}
	b.ended = b.framing == http1.NoBody
}

func (b *answerBody) stop() { b.c.interrupt() }

// Read is io.Reader.
func (b *answerBody) Read(to []byte) (int, error) {
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

// readSome reads what is in the buffer, or past it.
func (b *answerBody) readSome(to []byte) (int, error) {
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

// readChunks waits for data, and takes as much as there is then.
func (b *answerBody) readChunks(to []byte) (n int, _ error) {
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

// passBody passes the body of an answer on.
func (r *request) passBody(c *conn) error {
	b := &c.body
	switch in := c.buffered(); {
	case b.ended:
		return nil
	case b.framing == http1.Sized && int64(len(in)) >= b.left:
		// It has come with its head.
		n := int(b.left)
		c.at += n
		return r.write(in[:n])
	case b.framing == http1.Sized && b.left-int64(len(in)) >= leastSpliced && r.splices(c):
		return r.splice(c)
	}
	if r.flushes(&c.answer) {
		b.flushes = r.Writer
	} else if r.settings.BufferResponse {
		// It may be read by another goroutine.
		c.watch()
	}
	if err := r.copy(b, c.answer.Length); err != nil {
		return err
	}
	if trailers := b.chunks.Trailers(); len(trailers) > 0 {
		return taken(r.Writer.Trailer(trailers))
	}
	return nil
}

// flushes says whether a body reaches the client piece by piece: one that has no known length, or is a stream of events.
func (r *request) flushes(a *message.Response) bool {
	return !r.settings.BufferResponse && (a.Length < 0 || strings.HasPrefix(a.Fields.Get(message.ContentType), "text/event-stream"))
}

// source is the body of an answer. stop ends a read that is under way in another goroutine.
type source interface {
	io.Reader
	stop()
}

// copy copies a body of some length, less than zero being not known.
func (r *request) copy(from source, length int64) error {
	buffer := large.Get()
	err := r.copyWith(buffer.Bytes(), from, length)
	buffer.Release()
	return err
}

func (r *request) copyWith(buffer []byte, from source, length int64) error {
	reader := io.Reader(from)
	if r.settings.BufferResponse && (length < 0 || length > int64(len(buffer))) {
		pieces := newElastic(r.Backend.Namespace(), from)
		defer pieces.end(from.stop)
		reader = pieces
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

// flush sends what has been written, if there is anybody who does.
func flush(w message.Writer) error {
	if w == nil {
		return nil
	}
	return taken(w.Flush())
}

func (r *request) write(part []byte) error {
	_, err := r.Writer.Write(part)
	return taken(err)
}

// taken tells an error of the client from those of endpoints.
func taken(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errNotTaken, err)
}
