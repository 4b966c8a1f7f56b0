package proxy

import (
	"fmt"
	"io"
	"net"
	"time"
)

// minSpliced is the minimum number of remaining bytes of a response body for which copying in the kernel is faster than
// copying in this process.
const minSpliced = 64 << 10

// splices reports whether the kernel may copy the response body from the endpoint's socket to the client's socket. This
// requires that neither connection uses TLS, that the client uses HTTP/1, that the request has been sent completely,
// and that the response need not be buffered.
func (r *request) splices(c *conn) bool {
	_, bare := c.socket.(*net.TCPConn)
	_, sent := r.body.shortInMemory()
	return bare && sent && r.Major == 1 && r.TLS() == nil && !r.settings.BufferResponse
}

// splice forwards the part of the response body that is in the connection's buffer, and lets the kernel copy the rest.
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
		c.keepInterrupted()
		n, err := r.Writer.ReadFrom(&io.LimitedReader{R: c.bare, N: b.left})
		b.left -= n
		now := time.Now()
		switch {
		case b.left == 0 && err == nil:
		case err == nil:
			return io.ErrUnexpectedEOF
		case !isTimeout(err) && c.closed():
			return fmt.Errorf("reading the response: %w", err)
		case !isTimeout(err) || now.Before(until) || c.interrupted.Load():
			return clientWriteError(err)
		case n > 0:
			moved = now
		case now.Sub(moved) >= c.in.limit:
			return fmt.Errorf("reading the response: %w", err)
		}
	}
	b.ended, c.in.moved = true, time.Time{}
	return nil
}
