package httpserver

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net"
	"os"

	"github.com/k8singress/k8singress/internal/http1"
	"github.com/k8singress/k8singress/internal/pools"
)

// small has buffers that almost all heads fit into.
var small = pools.NewBuffers("httpserver: 4 KiB", 4<<10)

// input is what has been read from a connection. It has a buffer only while there is something in it.
type input struct {
	buffer []byte
	pooled pools.Buffer
	// start and end are of what has not been used yet.
	start, end int
}

func (i *input) empty() bool { return i.start == i.end }

// unread returns what has not been used.
func (i *input) unread() []byte { return i.buffer[i.start:i.end] }

func (i *input) use(n int) { i.start += n }

// space returns room to read into, for which a buffer is taken, or what is in it moved to its beginning.
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

// grow doubles the buffer.
func (i *input) grow() {
	buffer := make([]byte, 2*len(i.buffer))
	end := copy(buffer, i.unread())
	i.release()
	i.buffer, i.end = buffer, end
}

// release gives the buffer back.
func (i *input) release() {
	i.pooled.Release()
	*i = input{}
}

// errPreface says that a client speaks HTTP/2.
var errPreface = errors.New("the client speaks HTTP/2")

// maxHead is how many bytes a head may have where nobody says it.
const maxHead = 32 << 10

// readHead reads a head and takes it apart. The first bytes may be there already.
func (c *conn) readHead() error {
	var scanner http1.Scanner
	limit := cmp.Or(c.options.MaxHead, maxHead)
	for first := true; ; first = false {
		unread := c.input.unread()
		if c.requests == 0 && len(unread) >= len(http1.Preface) && string(unread[:len(http1.Preface)]) == http1.Preface && c.server.HandOver != nil {
			return errPreface
		}
		head, end, err := scanner.Find(unread)
		if err == nil && (head == nil && len(unread) >= limit || len(head) > limit) {
			err = http1.ErrHeadTooLarge
		}
		switch {
		case err != nil:
			// What is refused has nothing of the request before it.
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
			// A head that comes in one piece sets no deadline.
			c.reads.limit(c.options.HeaderTimeout)
		}
		if err := c.fill(); err != nil {
			return c.unfinished(err)
		}
	}
}

// unfinished returns why a head that does not end is refused: its client has taken too long. An end of the connection is no reason to
// answer, and neither is silence behind the empty lines that some clients send after a body: the answer would be taken for that to
// their next request.
func (c *conn) unfinished(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && len(bytes.Trim(c.input.unread(), "\r\n")) > 0 {
		return http1.ErrHeadTimeout
	}
	return err
}

// fill reads more into the buffer.
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

// readIdle waits for the first bytes of a request. It holds a buffer only once they are there.
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

// firstSize is what is read at first where a socket cannot be asked whether there is something.
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

// handOver passes a connection on with the bytes that have already been read. It closes the connection if a body is being read.
func (c *conn) handOver() {
	if c.stopBody() == nil {
		c.server.HandOver(c.detach())
	}
}

// replay returns a connection that first gives what has been read ahead. It is the connection itself if there is nothing.
func replay(nc net.Conn, ahead []byte) net.Conn {
	if len(ahead) == 0 {
		return nc
	}
	return &replayed{nc, bytes.Clone(ahead)}
}

// replayed is a connection of which some has been read.
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

// NetConn returns the connection below.
func (r *replayed) NetConn() net.Conn { return r.Conn }

// CloseWrite ends the direction to the client.
func (r *replayed) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
