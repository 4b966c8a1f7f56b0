package httpserver

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/model/pools"
)

// small is a pool of buffers that are large enough for almost all request heads.
var small = pools.NewBuffers("httpserver: 4 KiB", 4<<10)

// input buffers the bytes read from a connection. It holds a buffer only while it is not empty.
type input struct {
	buffer []byte
	pooled pools.Buffer
	// start and end are the offsets of the unread bytes in the buffer.
	start, end int
}

func (i *input) empty() bool { return i.start == i.end }

// unread returns the buffered bytes that were not consumed yet.
func (i *input) unread() []byte { return i.buffer[i.start:i.end] }

func (i *input) use(n int) { i.start += n }

// space returns the free part of the buffer, for the next read from the connection. If there is no buffer yet, it takes
// one from the pool. If the buffer has no free bytes at its end, it moves the unread bytes to the start.
func (i *input) space() []byte {
	switch {
	case i.buffer == nil:
		i.pooled = small.Get()
		i.buffer = i.pooled.Bytes()
	case i.start == i.end:
		i.start, i.end = 0, 0
	case i.end == len(i.buffer):
		i.end = copy(i.buffer, i.unread())
		i.start = 0
	}
	return i.buffer[i.end:]
}

// grow doubles the size of the buffer.
func (i *input) grow() {
	buffer := make([]byte, 2*len(i.buffer))
	end := copy(buffer, i.unread())
	i.release()
	i.buffer, i.end = buffer, end
}

// release returns the buffer to the pool.
func (i *input) release() {
	i.pooled.Release()
	*i = input{}
}

// errPreface means that the client uses HTTP/2 with prior knowledge.
var errPreface = errors.New("the client speaks HTTP/2")

// preface is the start of an HTTP/2 connection without TLS.
var preface = []byte(http1.Preface)

// maxHead is the default maximum size of a request head in bytes.
const maxHead = 32 << 10

// readHead reads and parses a request head. The first bytes may already be in the input buffer.
func (c *Conn) readHead() error {
	var scanner http1.Scanner
	limit := cmp.Or(c.limits.HeadBytes, maxHead)
	for first := true; ; first = false {
		unread := c.input.unread()
		if c.requests == 0 && bytes.HasPrefix(unread, preface) && c.limits.H2C && c.info.TLS == nil {
			return errPreface
		}
		head, end, err := scanner.Find(unread)
		if err == nil && (head == nil && len(unread) >= limit || len(head) > limit) {
			err = http1.ErrHeadTooLarge
		}
		switch {
		case err != nil:
			// Clear the previous request, so that the rejected request does not contain parts of it.
			c.forget()
			return err
		case head != nil:
			c.input.use(end)
			c.request.Names = c.limits.Names
			err := c.head.Parse(head, &c.request)
			if c.input.empty() {
				c.input.release()
			}
			return err
		}
		if first {
			// Set the deadline only after the first read, because a head that arrives in a single read needs no
			// deadline.
			c.reads.limit(c.limits.Head)
		}
		if err := c.fill(); err != nil {
			return c.unfinished(err)
		}
	}
}

// unfinished returns the error for a request head that is incomplete because reading failed with err. If reading timed
// out, it returns ErrHeadTimeout, and the client gets 408. Otherwise it returns err, and the client gets no response. A
// client that has sent only empty lines, as some clients do after a body, gets no response either, because it would
// take the response for an answer to its next request.
func (c *Conn) unfinished(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && len(bytes.Trim(c.input.unread(), "\r\n")) > 0 {
		return http1.ErrHeadTimeout
	}
	return err
}

// fill reads from the connection into the input buffer.
func (c *Conn) fill() error {
	space := c.input.space()
	if len(space) == 0 {
		c.input.grow()
		space = c.input.space()
	}
	n, err := c.nc.Read(space)
	c.input.end += n
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// readIdle waits for the first bytes of a request and reads them into the input buffer. The connection holds no input
// buffer while it waits.
func (c *Conn) readIdle() error {
	c.input.release()
	if c.raw != nil && canReadFirst {
		c.firstErr = nil
		if err := c.raw.Read(c.firstRead); err != nil {
			return err
		}
		if c.firstErr != nil {
			return c.firstErr
		}
		c.input.end = c.firstCount
		return nil
	}
	return c.readSmall()
}

// firstSize is the size in bytes of the buffer that idle connections hold if their socket cannot be polled.
const firstSize = 512

func (c *Conn) readSmall() error {
	if c.first == nil {
		c.first = make([]byte, firstSize)
	}
	n, err := c.nc.Read(c.first)
	if n > 0 {
		c.input.end += copy(c.input.space(), c.first[:n])
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// handOver passes the connection, including the bytes that were already read, to Host.HandOver.
func (c *Conn) handOver() {
	if c.stopBody() == nil {
		c.host.HandOver(c.detach())
	}
}
