package proxy

import (
	"fmt"
	"io"
	"net"
	"time"
)

// leastSpliced is how long the rest of a body has to be for the kernel to move it faster than we do.
const leastSpliced = 64 << 10

// splices says whether the kernel may move a body from one socket to the other: both are bare TCP, and nobody wants to see it.
func (r *request) splices(c *conn) bool {
	_, bare := c.socket.(*net.TCPConn)
	_, sent := r.body.short()
	return bare && sent && r.Major == 1 && r.TLS() == nil && !r.settings.BufferResponse
}

// splice passes on what is in the buffer, and has the rest moved.
func (r *request) splice(c *conn) error {
	b := &c.body
	in := c.buffered()
	c.at += len(in)
	b.left -= int64(len(in))
	if err := r.write(in); err != nil {
		return err
	}
	c.watch()
	tick := max(c.in.limit/renewParts, time.Millisecond)
	for moved := time.Now(); b.left > 0; {
		until := time.Now().Add(tick)
		_ = c.bare.SetReadDeadline(until)
		c.stopAgain()
		n, err := r.Writer.ReadFrom(&io.LimitedReader{R: c.bare, N: b.left})
		b.left -= n
		now := time.Now()
		switch {
		case b.left == 0 && err == nil:
		case err == nil:
			return io.ErrUnexpectedEOF
		case !isTimeout(err) && c.closed():
			return fmt.Errorf("reading the answer: %w", err)
		case !isTimeout(err) || now.Before(until) || c.interrupted.Load():
			return taken(err)
		case n > 0:
			moved = now
		case now.Sub(moved) >= c.in.limit:
			return fmt.Errorf("reading the answer: %w", err)
		}
	}
	b.ended, c.in.moved = true, time.Time{}
	return nil
}
