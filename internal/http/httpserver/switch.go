package httpserver

import (
	"errors"
	"io"
	"net"
	"time"
)

var (
	errNoSwitch   = errors.New("a connection can be switched only between the head and the end of the response")
	errUnreadBody = errors.New(
		"the connection cannot be switched before the whole request body has been read")
)

// Switch hands over the connection to the caller after the head of a response. Reads from the returned connection start
// with the bytes that the server has already read. If the server has no such bytes, Switch returns the original
// connection, so that the kernel can copy data between two plaintext TCP connections.
//
// Switch fails during a read of the request body, and if the body was not read to its end, because the rest of the body
// would be read as the new protocol.
func (w *writer) Switch() (io.ReadWriteCloser, error) {
	if !w.started || w.done {
		return nil, errNoSwitch
	}
	c := w.c
	if err := c.stopBody(); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	if x := c.context.Load(); x != nil {
		// The request and its context continue, but the connection is no longer watched. Its new owner detects a
		// disconnect of the client.
		x.unwatch()
	}
	w.done = true
	w.release()
	return c.detach(), nil
}

// stopBody makes all later reads of the request body fail. It returns an error if the body is being read, or was not
// read to its end.
func (c *conn) stopBody() error {
	b := c.body
	if b == nil {
		return nil
	}
	if !b.mu.TryLock() {
		return errUnreadBody
	}
	defer b.mu.Unlock()
	if !b.ended() {
		return errUnreadBody
	}
	b.err = errBodyOver
	return nil
}

// detach returns a connection for the new owner. Reads from it start with the bytes that the server has already read.
// The caller must have called stopBody.
func (c *conn) detach() net.Conn {
	c.switched = true
	_ = c.nc.SetDeadline(time.Time{})
	conn := replay(c.nc, c.input.unread())
	c.input.release()
	return conn
}
