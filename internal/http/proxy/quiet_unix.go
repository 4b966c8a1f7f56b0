//go:build unix

package proxy

import (
	"errors"
	"syscall"
)

// quiet reports whether an idle connection can be used for the next request. It returns false if the endpoint has
// closed the connection, or has sent data. Such data is an unsolicited response, which must not be taken for the
// response to the next request.
func (c *conn) quiet() bool {
	return c.silent() && (c.records == nil || c.records.drained(c.socket, c.oneByte[:]))
}

// silent reports whether the connection is open and no data can be read from the socket. If the socket cannot be
// inspected, because c.raw is nil, it returns true.
func (c *conn) silent() bool {
	if c.raw == nil {
		return true
	}
	if c.peek == nil {
		c.peek = c.receive
	}
	// Use Control, which ignores the read deadline, because the deadline may have passed.
	return c.raw.Control(c.peek) == nil && c.noData
}

// closed reports whether the endpoint has closed the connection and all its data has been read.
func (c *conn) closed() bool { return !c.silent() && !c.hasData }

// receive peeks at the socket. It sets noData if no data has arrived, and hasData if data has arrived. If the endpoint
// has closed the connection, both are false.
func (c *conn) receive(fd uintptr) {
	n, _, err := syscall.Recvfrom(int(fd), c.oneByte[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	c.noData, c.hasData = errors.Is(err, syscall.EAGAIN), n > 0
}
