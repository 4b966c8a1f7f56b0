// Package httpserver serves HTTP/1.1. It uses package http1 on client connections, with one goroutine for each
// connection.
//
// It is used instead of net/http because it needs less work for each request: requests are parsed into reused values, a
// short response is sent with a single write, and an idle connection holds no buffer. It reads the limits for each
// request, so it serves a connection across configuration changes. Timeouts that restart with each read or write may be
// up to a third longer than configured, so that deadlines do not have to be set for each read or write.
package httpserver

import (
	"net"
	"time"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/netconn"
)

// Host gives a connection its limits and handles its requests. Except for ReportPanic, its methods are only called by
// the goroutine that serves the connection.
type Host interface {
	// Limits returns the current limits of the connection. It is called for each request. The value that it returns
	// must never be modified.
	Limits() *limits.Limits
	// Handle serves one request. After it returns, the request and the writer are reused for the next request, so it
	// must not keep them. It may keep strings, the body and the context. If it writes no response, the client gets 500.
	// If it panics, the connection is closed at once. If it sets Panicked in the request, the response is completed
	// first, and then the connection is closed.
	Handle(w message.Writer, r *message.Request)
	// HandOver takes over a connection without TLS whose client uses HTTP/2 with prior knowledge. It is called only if
	// the limits allow H2C; otherwise such clients are rejected. Reads from conn first return the bytes that the server
	// has already read.
	HandOver(conn net.Conn)
	// Reject responds to an invalid request, for which Handle is not called. r contains the parts that could be parsed.
	// The connection is closed after the response. If Reject writes no response, the client gets the status without a
	// body.
	Reject(w message.Writer, r *message.Request, reason *http1.Error)
	// ReportPanic is called if Handle panics, except with http.ErrAbortHandler. value is the value of the panic. The
	// goroutine of Handle calls it.
	ReportPanic(value any)
}

// New returns the connection nc of a client, whose requests host handles. info describes the connection to the host.
// The TLS handshake of a *tls.Conn must be complete.
func New(nc net.Conn, info *message.Conn, host Host) *Conn {
	c := &Conn{host: host, nc: nc, info: info}
	c.lowerTCP, _ = netconn.Find[*net.TCPConn](nc)
	if c.tcp, _ = nc.(*net.TCPConn); c.tcp != nil {
		c.raw, _ = c.tcp.SyscallConn()
	}
	c.reads.set, c.writes.set = nc.SetReadDeadline, nc.SetWriteDeadline
	c.firstRead = c.readFirst
	c.newContext = c.makeContext
	c.idleSince.Store(int64(time.Since(processStart)))
	c.writer.c = c
	return c
}

// Serve serves the requests of the connection, one after another, until the connection ends. It then closes the
// connection, unless another owner has taken it over, for example after an upgrade to WebSocket. It may be called only
// once.
func (c *Conn) Serve() {
	defer c.end()
	for more := true; more; {
		more = c.readRequest() && c.serveRequest()
	}
	c.input.release()
}

// Shutdown closes the connection if it is idle, or after the current response, which contains "Connection: close". If
// the connection waits for its first request, that request still gets a response if it arrives soon. Shutdown does not
// wait until the connection is closed.
func (c *Conn) Shutdown() {
	c.closing.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.state.Load() {
	case stateIdle:
		_ = c.nc.SetReadDeadline(longAgo)
	case stateNew:
		_ = c.nc.SetReadDeadline(time.Now().Add(grace))
	}
}

// Drain closes the connection if it waits for a request, even for its first one, or after the current response. It does
// not wait until the connection is closed.
func (c *Conn) Drain() {
	c.closing.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Load() != stateActive {
		_ = c.nc.SetReadDeadline(longAgo)
	}
}

// IdleTime returns how long the connection has waited for a request. It returns false if a request is in flight.
func (c *Conn) IdleTime() (time.Duration, bool) {
	if c.state.Load() == stateActive {
		return 0, false
	}
	return time.Since(processStart) - time.Duration(c.idleSince.Load()), true
}
