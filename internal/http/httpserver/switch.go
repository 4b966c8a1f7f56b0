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

// Switch hands the connection over after a head. The new owner first reads the bytes that were already read from the
// client. If there are none, Switch returns the connection itself, so that the kernel can join two plaintext TCP
// connections.
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

// stopBody ends the request body for all readers. It returns an error during a read, or if bytes of the body are left.
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

// detach returns the connection for its new owner, with the bytes that were already read. The caller has ended the
// request body.
func (c *conn) detach() net.Conn {
	c.switched = true
	_ = c.nc.SetDeadline(time.Time{})
	conn := replay(c.nc, c.input.unread())
	c.input.release()
	return conn
}
