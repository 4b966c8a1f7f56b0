package proxy

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/panics"
)

const (
	// renewInterval is the minimum time between two updates of a connection's deadline, because an update costs as much
	// as a small write. For timeouts shorter than renewInterval × renewParts, the minimum time is the timeout divided
	// by renewParts.
	renewInterval = time.Second
	renewParts    = 8
	// watchDelay is how long a request waits for the endpoint before it calls conn.watch, which starts to watch for a
	// disconnect of the client. Most responses arrive earlier, so that the cost of this call is saved. If the client
	// disconnects before the call, this is detected within 2*watchDelay.
	watchDelay = 100 * time.Millisecond
	// maxHead is the maximum size of a response head, in bytes. It is many times the size of nginx's buffers.
	maxHead = 1 << 20
)

// small is the pool of 4 KiB buffers, which are used mainly for request and response heads. large is the pool of 32 KiB
// buffers, which are used mainly for bodies.
var small, large = pools.NewBuffers("proxy: 4 KiB", 4<<10), pools.NewBuffers("proxy: 32 KiB", 32<<10)

// conn is a connection to an endpoint. It is used by one request at a time.
type conn struct {
	key key
	// share is the namespace's share of the budget of file descriptors. The method close returns the file descriptor of
	// the connection to it. share is nil if no file descriptor was taken from a budget.
	share *budget.Share
	// socket is the connection that is read from and written to. It is a *tls.Conn if the endpoint uses TLS. bare is
	// the TCP connection, below TLS if there is TLS. records is nil without TLS.
	socket, bare net.Conn
	records      *records
	raw          syscall.RawConn
	// buffer holds received data. The bytes between the offsets at and end have not been processed yet. The connection
	// has a buffer only during a request.
	buffer  pools.Buffer
	at, end int
	// head contains the framing of the last response from the endpoint; response contains its status and header fields,
	// and body reads its body. fields contains the header fields of the last request to the endpoint.
	head     http1.ResponseHead
	response message.Response
	fields   message.Fields
	body     responseBody
	// since is the time at which the connection became idle. maxIdle is the maximum number of idle connections with the
	// same key. lifetime is how long this connection may be idle. If maxIdle or lifetime is 0, the setting of the pool
	// applies instead.
	since    time.Time
	maxIdle  int
	lifetime time.Duration
	// calls is the number of requests to an external service that were sent on this connection.
	calls int
	// request is the current request. The function unwatch undoes the method watch. It is nil if watch has not been
	// called for the current request.
	request *message.Request
	unwatch func() bool
	// in is the read deadline, and out is the write deadline. While the request body is being sent, sending is true and
	// there is no read deadline.
	in, out deadline
	sending atomic.Bool
	// touched is true if data has arrived since the request was sent.
	touched     bool
	interrupted atomic.Bool
	// The method quiet uses these fields. They are part of conn because quiet is called before each request and must
	// not allocate memory.
	peek            func(fd uintptr)
	oneByte         [1]byte
	noData, hasData bool
}

// deadline tracks the read deadline or the write deadline of a connection.
type deadline struct {
	limit, slack time.Duration
	// moved is the time at which the deadline was last set.
	moved time.Time
}

// due reports whether the caller must set the deadline again, because d.slack has passed since it was last set. If so,
// due also sets d.moved to now. The caller must add d.slack to the timeout, because the next update is not due before
// d.slack has passed. A timeout may therefore be late by up to d.slack.
func (d *deadline) due(now time.Time) bool {
	if now.Sub(d.moved) < d.slack {
		return false
	}
	d.moved = now
	return true
}

func newConn(socket net.Conn, to key) *conn {
	c := &conn{key: to, socket: socket, bare: socket}
	if secured, ok := socket.(*tls.Conn); ok {
		c.records, _ = secured.NetConn().(*records)
		c.bare = c.records.Conn
	}
	if tcp, ok := c.bare.(syscall.Conn); ok {
		// If this fails, c.raw is nil, and the method silent always returns true.
		c.raw, _ = tcp.SyscallConn()
	}
	return c
}

func (c *conn) close() {
	_ = c.socket.Close()
	if c.share != nil {
		c.share.Give(1)
		c.share = nil
	}
}

// closeUnless closes the connection if *over is false. A function that uses the connection defers closeUnless, and sets
// over to true when it has finished. The connection is therefore closed after a panic. Closing it stops a goroutine
// that is still sending the request body, and releases the file descriptor.
func (c *conn) closeUnless(over *bool) {
	if !*over {
		c.close()
	}
}

// buffered returns the received data that has not been processed yet.
func (c *conn) buffered() []byte { return c.buffer.Bytes()[c.at:c.end] }

// fill reads more data into the buffer. A full buffer is replaced by a larger one.
func (c *conn) fill() error {
	if c.at == c.end {
		c.at, c.end = 0, 0
	}
	if c.end == len(c.buffer.Bytes()) {
		c.grow()
	}
	n, err := c.read(c.buffer.Bytes()[c.end:])
	if c.end += n; n > 0 {
		// Return the data without the error: the next read returns the same error again.
		return nil
	}
	return err
}

func (c *conn) grow() {
	unused, old := c.buffered(), c.buffer.Move()
	if size := 2 * len(old.Bytes()); size <= 32<<10 {
		c.buffer = large.Get()
	} else {
		c.buffer = pools.Unpooled("proxy: a long head", size)
	}
	c.at, c.end = 0, copy(c.buffer.Bytes(), unused)
	old.Release()
}

// read reads from the endpoint. The first reads of a request have a short deadline, watchDelay. If it expires, read
// calls watch, which starts to watch for a disconnect of the client, and reads again with the read timeout. So fast
// responses do not need the call of watch.
func (c *conn) read(b []byte) (int, error) {
	// Extend the deadline before each read. The last read may have been long ago if the client accepts the response
	// slowly.
	c.extendRead()
	n, err := c.socket.Read(b)
	if err != nil && n == 0 && c.unwatch == nil && errors.Is(err, os.ErrDeadlineExceeded) {
		c.watch()
		n, err = c.socket.Read(b)
	}
	c.touched = c.touched || n > 0
	return n, err
}

func (c *conn) write(b []byte) error {
	c.extendWrite()
	_, err := c.socket.Write(b)
	return err
}

// begin prepares the connection for a request. The parameters reads and writes are the read timeout and the write
// timeout. The caller must call finish after the request.
func (c *conn) begin(r *message.Request, reads, writes time.Duration) {
	c.buffer = small.Get()
	c.at, c.end, c.touched = 0, 0, false
	c.interrupted.Store(false)
	c.request = r
	slack := min(renewInterval, reads/renewParts, writes/renewParts)
	if c.in.limit != reads || c.out.limit != writes {
		c.in, c.out = deadline{limit: reads, slack: slack}, deadline{limit: writes, slack: slack}
	}
	if slack < renewInterval {
		c.watch()
		return
	}
	c.in.slack = watchDelay
}

// watch makes sure that the connection is interrupted when the context of the request ends, for example because the
// client disconnects. It also extends the deadline of reads from watchDelay to the read timeout.
func (c *conn) watch() {
	if c.unwatch != nil {
		return
	}
	c.unwatch = panics.AfterContext(c.request.Context(), "proxy/interrupt", c.interrupt)
	c.in.slack, c.in.moved = c.out.slack, time.Time{}
	c.extendRead()
}

// finish must be called when a request no longer uses the connection. It returns false if the connection cannot be
// reused, because interrupt was called or is about to be called.
func (c *conn) finish() bool {
	c.request = nil
	if c.unwatch == nil {
		return true
	}
	stopped := c.unwatch()
	// The next request starts without a call of watch, so its first read must set a new deadline.
	c.unwatch, c.in.moved = nil, time.Time{}
	return stopped
}

// extendRead renews the read deadline. The read timeout limits the time without progress, not the time for the whole
// response.
func (c *conn) extendRead() {
	now := time.Now()
	if c.sending.Load() || !c.in.due(now) {
		return
	}
	limit := c.in.limit
	if c.unwatch == nil {
		limit = watchDelay
	}
	// If SetReadDeadline fails, the next use of the connection returns an error.
	_ = c.bare.SetReadDeadline(now.Add(limit + c.in.slack))
	c.keepInterrupted()
}

func (c *conn) extendWrite() {
	if now := time.Now(); c.out.due(now) {
		_ = c.bare.SetWriteDeadline(now.Add(c.out.limit + c.out.slack))
		c.keepInterrupted()
	}
}

// suspendReadDeadline removes the read deadline until startReadTimeout is called. It is used while the request body is
// sent, because the endpoint may wait for the body of a slow client.
func (c *conn) suspendReadDeadline() {
	c.watch()
	c.sending.Store(true)
	_ = c.bare.SetReadDeadline(time.Time{})
	c.keepInterrupted()
}

// startReadTimeout starts the read timeout for the response. It is called, after suspendReadDeadline, by the goroutine
// that has sent the request body.
func (c *conn) startReadTimeout() {
	c.sending.Store(false)
	_ = c.bare.SetReadDeadline(time.Now().Add(c.in.limit + c.out.slack))
	c.keepInterrupted()
}

// interrupt ends all current and later reads and writes of the connection. It may be called from any goroutine.
func (c *conn) interrupt() {
	c.interrupted.Store(true)
	c.keepInterrupted()
}

func (c *conn) keepInterrupted() {
	if c.interrupted.Load() {
		_ = c.bare.SetDeadline(time.Unix(1, 0))
	}
}
