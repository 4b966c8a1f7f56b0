package httpserver

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/process/netconn"
)

// The states of a connection: a new connection waits for its first request, an idle connection waits for another
// request, and on an active connection, a request is being read or served.
const (
	stateNew int32 = iota
	stateIdle
	stateActive
)

// Conn is the connection of one client.
type Conn struct {
	host   Host
	nc     net.Conn
	info   *message.Conn
	limits *limits.Limits
	// closing is true after a call of Shutdown or Drain.
	closing atomic.Bool
	// tcp is the connection if it is plaintext TCP, otherwise nil; raw is then its socket. lowerTCP is the TCP
	// connection below TLS and other wrappers, or nil if there is no TCP connection.
	tcp      *net.TCPConn
	raw      syscall.RawConn
	lowerTCP *net.TCPConn
	// firstRead reads the first bytes of a request from the socket. It stores the number of bytes in firstCount, or an
	// error in firstErr.
	firstRead  func(fd uintptr) bool
	firstCount int
	firstErr   error

	state atomic.Int32
	// idleSince is the time at which the connection last became idle, as a duration since processStart.
	idleSince atomic.Int64
	// mu must be held while a goroutine other than the connection's own goroutine sets the read deadline.
	mu sync.Mutex

	reads, writes deadline
	input         input
	head          http1.RequestHead
	request       message.Request
	writer        writer
	body          *body
	context       atomic.Pointer[requestContext]
	newContext    contextFunc
	// ahead is true if bytes after the current request, usually of the next request, have already been read.
	ahead    atomic.Bool
	requests int
	// first is the buffer for the first bytes of a request. It is only used for connections whose socket cannot be
	// polled.
	first []byte
	// heading must be held while a response head or 100 Continue is written, because the goroutine that reads the
	// request body may write 100 Continue at any time.
	heading sync.Mutex
	// switched is true if the handler or another server has taken over the connection, for example after an upgrade to
	// WebSocket.
	switched bool
}

// abandon prevents the buffers of the connection from being returned to their pool. It is called after the handler has
// panicked, because a goroutine of the handler may still use the buffers.
func (c *Conn) abandon() { c.input.pooled, c.writer.pooled = pools.Buffer{}, pools.Buffer{} }

// end closes the connection, unless the handler or another server has taken it over.
func (c *Conn) end() {
	if !c.switched {
		_ = c.nc.Close()
	}
}

// readRequest waits for the next request and reads its head. It returns false if there is no request to serve, because
// the connection has ended or the request was rejected.
func (c *Conn) readRequest() bool {
	c.limits = c.host.Limits()
	if c.input.empty() {
		if !c.wait() {
			return false
		}
		// Load the limits again, because they may have changed while the connection was idle.
		c.limits = c.host.Limits()
	}
	c.state.Store(stateActive)
	c.reads.whole(c.limits.Read)
	err := c.readHead()
	c.writes.whole(c.limits.Write)
	switch {
	case err == nil:
		return true
	case errors.Is(err, errPreface):
		c.handOver()
		return false
	}
	if reason, ok := err.(*http1.Error); ok { //nolint:errorlint // Errors of http1 are not wrapped here.
		c.reject(reason)
	}
	return false
}

// wait waits for the first byte of a request, without holding a buffer. It returns false if the connection must be
// closed.
func (c *Conn) wait() bool {
	limit := c.limits.Idle
	if c.requests == 0 {
		limit = c.limits.Head
	} else {
		c.forget()
		c.idleSince.Store(int64(time.Since(processStart)))
		c.state.Store(stateIdle)
	}
	c.reads.whole(0)
	c.reads.extend(limit)
	if c.closing.Load() {
		if c.requests > 0 {
			return false
		}
		c.reads.fix(time.Since(processStart) + grace)
	}
	err := c.readIdle()
	c.state.Store(stateActive)
	if c.closing.Load() {
		// Shutdown may have changed the read deadline in the meantime. So invalidate the cached deadline, which may be
		// wrong.
		c.mu.Lock()
		c.reads.invalidate()
		c.mu.Unlock()
	}
	return err == nil
}

// grace is how long a new connection may still wait for its first request after a shutdown has started. The client may
// have sent the request before it learns about the shutdown.
const grace = time.Second

var longAgo = time.Unix(1, 0)

// maxKeptFields is the maximum number of header fields for which an idle connection keeps memory.
const maxKeptFields = 32

// forget clears the last request, so that an idle connection does not keep its strings in memory.
func (c *Conn) forget() {
	fields := c.request.Fields[:0]
	if clear(fields[:cap(fields)]); cap(fields) > maxKeptFields {
		fields = nil
	}
	c.request = message.Request{Fields: fields}
	c.body = nil
}

// serveRequest calls the handler for the request that was read. It returns true if the connection can serve another
// request.
func (c *Conn) serveRequest() bool {
	c.requests++
	c.request.Conn = c.info
	c.request.SetContextFunc(c.newContext)
	c.beginBody()
	c.ahead.Store(c.body == nil && !c.input.empty())
	c.writer.begin()
	ok := c.handle()
	c.endContext()
	if c.switched {
		return false
	}
	rest, more := c.endBody()
	if !ok {
		c.writer.Abort()
	}
	if !ok || c.request.Panicked {
		c.writer.closing = true
		c.abandon()
	}
	return c.writer.finish() && more && c.drain(rest) || c.endAfter(more && rest == 0)
}

// handle calls the handler. It recovers from a panic of the handler and then returns false.
func (c *Conn) handle() (ok bool) {
	defer func() {
		if ok {
			return
		}
		value := recover()
		//nolint:errorlint // It is the very value of a panic.
		if aborts := value == http.ErrAbortHandler; value != nil && !aborts {
			c.host.ReportPanic(value)
		}
	}()
	c.host.Handle(&c.writer, &c.request)
	return true
}

// reject responds to an invalid request with an error status. It closes only the write side of the connection at first,
// so that the client can read the response.
func (c *Conn) reject(reason *http1.Error) {
	c.request.Conn = c.info
	c.writer.begin()
	c.writer.http10, c.writer.closing = false, true // The version of the client may be unknown.
	c.host.Reject(&c.writer, &c.request, reason)
	if !c.writer.Started() {
		_ = c.writer.Head(&message.Response{Status: reason.Status})
	}
	if c.writer.Flush() == nil {
		c.linger()
	}
	c.writer.release()
}

// endAfter is called before the connection is closed. If the client may still be sending data, endAfter discards the
// data for a while, so that the client can read the response. It always returns false, because the connection cannot
// serve another request.
func (c *Conn) endAfter(bodyRead bool) bool {
	if c.writer.err == nil && (!bodyRead || !c.input.empty()) {
		c.linger()
	}
	return false
}

const (
	// Closing a connection with unread input resets it, and the client may then lose the response. So unread input is
	// discarded before the connection is closed, for at most lingerTime and at most maxLingering bytes.
	lingerTime   = time.Second
	maxLingering = 8 << 20
)

// linger closes the write side of the connection. It then discards input until the client has closed the connection,
// within the limits lingerTime and maxLingering.
func (c *Conn) linger() {
	from := c.nc
	if secure, ok := c.nc.(*tls.Conn); ok && secure.CloseWrite() != nil {
		return
	}
	if c.lowerTCP != nil {
		// Read below TLS: the input is discarded, so there is no need to decrypt it.
		from = c.lowerTCP
	}
	if netconn.CloseWrite(from) != nil {
		return
	}
	if from.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	buffer := small.Get()
	for left := maxLingering; left > 0; {
		n, err := from.Read(buffer.Bytes())
		if err != nil {
			break
		}
		left -= n
	}
	buffer.Release()
}
