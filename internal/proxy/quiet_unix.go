//go:build unix

package proxy

import (
	"errors"
	"syscall"
)

// quiet says whether nothing has come in on an idle connection. The end is such a thing, and so is an answer that nobody
// asked for: it would be taken for the answer to the next request.
func (c *conn) quiet() bool {
	if c.reader.Buffered() > 0 {
		return false
	}
	if c.raw == nil {
		return true
	}
	if c.peek == nil {
		c.peek = c.look
	}
	// Control does not look at the deadline, which may be over by now.
	return c.raw.Control(c.peek) == nil && c.nothing
}

// look notes whether nothing has come in.
func (c *conn) look(fd uintptr) {
	_, _, err := syscall.Recvfrom(int(fd), c.one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	c.nothing = errors.Is(err, syscall.EAGAIN)
}
