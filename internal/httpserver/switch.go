package httpserver

import (
	"errors"
	"io"
	"net"
	"time"
)

var (
	errNoSwitch   = errors.New("a connection can be switched after a head only, and before the end of the answer")
	errUnreadBody = errors.New("the connection cannot be switched before the body of the request has been read to its end")
)

// Switch hands the connection over after a head. The new owner first reads the bytes that have already been read from the client. If there
// are none, Switch returns the connection itself, so that the kernel can join two bare TCP connections.
//
// Switch fails while a read of the request's body is under way, and if the body has not been read to its end: the rest of it would be
// taken for the new protocol.
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
		// The request goes on, and its context with it; whoever has the connection sees itself when the client goes away.
		x.unwatch()
	}
	w.done = true
	w.release()
	return c.detach(), nil
}

// stopBody ends the body of the request for all readers. It returns an error if a read is under way or bytes of the body are left.
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

// detach gives the connection to another owner, with the bytes that have already been read. No body of a request may be readable.
func (c *conn) detach() net.Conn {
	c.switched = true
	_ = c.nc.SetDeadline(time.Time{})
	conn := replay(c.nc, c.input.unread())
	c.input.release()
	return conn
}
