//go:build unix

package proxy

import (
	"errors"
	"syscall"
)

// quiet reports whether nothing has arrived on an idle connection. The end of the connection counts as something, and
// so does an unsolicited response, which must not be taken for the response to the next request.
func (c *conn) quiet() bool {
	return c.silent() && (c.records == nil || c.records.drained(c.socket, c.oneByte[:]))
}

// silent reports whether nothing can be read from the socket. Without a raw socket it returns true.
func (c *conn) silent() bool {
	if c.raw == nil {
		return true
	}
	if c.peek == nil {
		c.peek = c.receive
	}
	// Control ignores the deadline, which may have passed.
	return c.raw.Control(c.peek) == nil && c.noData
}

// closed reports whether the endpoint has closed the connection and all its data has been read.
func (c *conn) closed() bool { return !c.silent() && !c.hasData }

// receive peeks at the socket and records whether data has arrived, or nothing, or the end.
func (c *conn) receive(fd uintptr) {
	n, _, err := syscall.Recvfrom(int(fd), c.oneByte[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	c.noData, c.hasData = errors.Is(err, syscall.EAGAIN), n > 0
}
