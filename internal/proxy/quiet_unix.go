//go:build unix

package proxy

import (
	"errors"
	"syscall"
)

// quiet says whether nothing has come in on an idle connection. The end is such a thing, and so is an answer that nobody
// asked for: it would be taken for the answer to the next request.
func (c *conn) quiet() bool {
	return c.silent() && (c.records == nil || c.records.drained(c.socket, c.one[:]))
}

// silent says whether nothing can be read from the socket.
func (c *conn) silent() bool {
	if c.raw == nil {
		return true
	}
	if c.peek == nil {
		c.peek = c.receive
	}
	// Control does not look at the deadline, which may be over by now.
	return c.raw.Control(c.peek) == nil && c.nothing
}

// closed says whether the endpoint has ended the connection, and all that it said before has been read.
func (c *conn) closed() bool { return !c.silent() && !c.something }

// receive notes whether anything has come in, or nothing, or the end.
func (c *conn) receive(fd uintptr) {
	n, _, err := syscall.Recvfrom(int(fd), c.one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	c.nothing, c.something = errors.Is(err, syscall.EAGAIN), n > 0
}
