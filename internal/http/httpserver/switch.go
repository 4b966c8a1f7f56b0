package httpserver

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"

	"github.com/k8singress/k8singress/internal/process/netconn"
)

var (
	errNoSwitch   = errors.New("a connection can be switched only between the head and the end of the response")
	errUnreadBody = errors.New(
		"the connection cannot be switched before the whole request body has been read")
)

// Switch hands over the connection to the caller, after the head of the response was written. Reads from the returned
// connection start with the bytes that the server has already read. If there are no such bytes, Switch returns the
// original connection, so that the kernel can copy data between two plaintext TCP connections.
//
// Switch fails if the request body was not read to its end, because the new protocol would get the rest of the body as
// its first data.
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
		// The context stays valid, but the server must not watch the connection any more. The new owner of the
		// connection detects a disconnect of the client.
		x.unwatch()
	}
	w.done = true
	w.release()
	return c.detach(), nil
}

// stopBody makes further reads of the request body fail. It returns an error if the body was not read to its end.
func (c *Conn) stopBody() error {
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

// detach gives up the connection, and returns it for its new owner. Reads from the returned connection start with the
// bytes that the server has already read. The caller must have called stopBody.
func (c *Conn) detach() net.Conn {
	c.switched = true
	_ = c.nc.SetDeadline(time.Time{})
	conn := netconn.Replay(c.nc, bytes.Clone(c.input.unread()))
	c.input.release()
	return conn
}
