package httpserver

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net"
	"os"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/model/pools"
)

// small is a pool of buffers that are large enough for almost all heads.
var small = pools.NewBuffers("httpserver: 4 KiB", 4<<10)

// input buffers the bytes read from a connection. It holds a buffer only while it is not empty.
type input struct {
	buffer []byte
	pooled pools.Buffer
	// start and end delimit the unread part of the buffer.
	start, end int
}

func (i *input) empty() bool { return i.start == i.end }

// unread returns the bytes that were not consumed.
func (i *input) unread() []byte { return i.buffer[i.start:i.end] }

func (i *input) use(n int) { i.start += n }

// space returns free space to read into. If there is no buffer, it takes a new buffer from the pool. If the end of the
// buffer is reached, it moves the unread bytes to the start.
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

// maxHead is the default maximum size of a head in bytes.
const maxHead = 32 << 10

// readHead reads and parses a head. Its first bytes may already be in the buffer.
func (c *conn) readHead() error {
	var scanner http1.Scanner
	limit := cmp.Or(c.options.MaxHead, maxHead)
	for first := true; ; first = false {
		unread := c.input.unread()
		if c.requests == 0 && len(unread) >= len(http1.Preface) &&
			string(unread[:len(http1.Preface)]) == http1.Preface && c.server.HandOver != nil {
			return errPreface
		}
		head, end, err := scanner.Find(unread)
		if err == nil && (head == nil && len(unread) >= limit || len(head) > limit) {
			err = http1.ErrHeadTooLarge
		}
		switch {
		case err != nil:
			// Clear the request, so that the rejected request does not contain parts of the previous request.
			c.forget()
			return err
		case head != nil:
			c.input.use(end)
			c.request.Names = c.options.Names
			err := c.head.Parse(head, &c.request)
			if c.input.empty() {
				c.input.release()
			}
			return err
		}
		if first {
			// A head that arrives in a single read needs no deadline, so the deadline is set after the first read.
			c.reads.limit(c.options.HeaderTimeout)
		}
		if err := c.fill(); err != nil {
			return c.unfinished(err)
		}
	}
}

// unfinished returns the error for a head that is incomplete because of err. Only ErrHeadTimeout is sent to the client.
// It is not returned if the client has sent nothing but empty lines, as some clients do after a body: such a client
// would take it for the response to its next request.
func (c *conn) unfinished(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && len(bytes.Trim(c.input.unread(), "\r\n")) > 0 {
		return http1.ErrHeadTimeout
	}
	return err
}

// fill reads more bytes into the buffer.
func (c *conn) fill() error {
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

// readIdle waits for the first bytes of a request and reads them into the buffer. It holds no buffer while it waits.
func (c *conn) readIdle() error {
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

// firstSize is the size in bytes of the first read on connections whose socket cannot be polled.
const firstSize = 512

func (c *conn) readSmall() error {
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

// handOver passes the connection to the HandOver function, with the bytes that were already read. If a body is being
// read, it closes the connection instead.
func (c *conn) handOver() {
	if c.stopBody() == nil {
		c.server.HandOver(c.detach())
	}
}

// replay returns a connection that first returns the bytes in ahead. If ahead is empty, it returns nc itself.
func replay(nc net.Conn, ahead []byte) net.Conn {
	if len(ahead) == 0 {
		return nc
	}
	return &replayed{nc, bytes.Clone(ahead)}
}

// replayed is a connection. ahead contains bytes that were already read from it, and that Read returns first.
type replayed struct {
	net.Conn
	ahead []byte
}

func (r *replayed) Read(b []byte) (int, error) {
	if len(r.ahead) == 0 {
		return r.Conn.Read(b)
	}
	n := copy(b, r.ahead)
	r.ahead = r.ahead[n:]
	return n, nil
}

// NetConn returns the wrapped connection.
func (r *replayed) NetConn() net.Conn { return r.Conn }

// CloseWrite closes the write side of the connection.
func (r *replayed) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
