package httpserver

import (
	"errors"
	"io"
	"time"
)

var errNoSwitch = errors.New("a connection can be switched after a head only, and before the end of the answer")

// Switch hands the connection over after a head. What has been read ahead comes first when it is read; if there is nothing, it is the
// connection itself, so that bare TCP connections can be joined without copying.
func (w *writer) Switch() (io.ReadWriteCloser, error) {
	if !w.started || w.done {
		return nil, errNoSwitch
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	c := w.c
	if x := c.context.Load(); x != nil {
		// The request goes on, and its context with it; whoever has the connection sees itself when the client goes away.
		x.unwatch()
	}
	c.switched, w.done = true, true
	_ = c.nc.SetDeadline(time.Time{})
	conn := replay(c.nc, c.input.unread())
	c.input.release()
	w.release()
	return conn, nil
}
