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
	// renewInterval is the minimum time between two updates of a deadline, because an update costs as much as a small
	// write. For short timeouts it is one eighth (renewParts) of the timeout.
	renewInterval = time.Second
	renewParts    = 8
	// watchDelay is how long an endpoint may take before the client is watched, because watching costs more than most
	// responses. A client that leaves before that is noticed within twice this time.
	watchDelay = 100 * time.Millisecond
	// maxHead is the maximum size of a response head, in bytes. It is many times the size of nginx's buffers.
	maxHead = 1 << 20
)

// small is the pool of buffers for heads, large the pool of buffers for bodies.
var small, large = pools.NewBuffers("proxy: 4 KiB", 4<<10), pools.NewBuffers("proxy: 32 KiB", 32<<10)

// conn is a connection to an endpoint. It is used by one request at a time.
type conn struct {
	key key
	// share is the budget to which close returns the connection's descriptor. It is nil if the connection has no
	// descriptor from a budget.
	share *budget.Share
	// socket is the connection for reads and writes. bare is the TCP connection below it. records is nil without TLS.
	socket, bare net.Conn
	records      *records
	raw          syscall.RawConn
	// buffer holds received data that is not used yet, between at and end. The connection has a buffer only during a
	// request.
	buffer  pools.Buffer
	at, end int
	// head and response belong to the last response, fields to the last request. body reads the rest of the response.
	head     http1.ResponseHead
	response message.Response
	fields   message.Fields
	body     responseBody
	// since is when the connection became idle. maxIdle is the maximum number of idle connections with the same key,
	// and lifetime is how long they are kept. Zero selects the settings of the pool.
	since    time.Time
	maxIdle  int
	lifetime time.Duration
	// calls is the number of calls to an external service on this connection.
	calls int
	// request is the current request. unwatch stops the end of the request from interrupting the connection; it is nil
	// if the request is not watched.
	request *message.Request
	unwatch func() bool
	// in and out are the deadlines of reads and writes. sending suspends the read deadline while the request body is
	// being sent.
	in, out deadline
	sending atomic.Bool
	// touched means that data has arrived since the request was sent.
	touched     bool
	interrupted atomic.Bool
	// These fields are used by quiet. They are kept because quiet is called before each request and must not allocate.
	peek            func(fd uintptr)
	oneByte         [1]byte
	noData, hasData bool
}

// deadline is the read or write deadline of a connection.
type deadline struct {
	limit, slack time.Duration
	// moved is when the deadline was last set.
	moved time.Time
}

// due reports whether the deadline has to be updated. Because updates are rare, the deadline is up to a second, or an
// eighth of the limit, late.
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
		// Without a raw connection, silent returns true.
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

// closeUnless closes the connection after a panic, when its request is not over. This ends an upload on it and frees
// its descriptor.
func (c *conn) closeUnless(over *bool) {
	if !*over {
		c.close()
	}
}

// buffered returns the received data that is not used yet.
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
		// The next read returns the error again.
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

// read reads from the endpoint. If the short deadline of an unwatched request expires, it watches the request and reads
// again.
func (c *conn) read(b []byte) (int, error) {
	// The deadline is set before the read, because a slow client may have taken long since the last one.
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

// begin prepares the connection for a request. finish must be called after the request.
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

// watch makes the end of the request interrupt the connection. From now on, reads may take as long as the read timeout
// allows.
func (c *conn) watch() {
	if c.unwatch != nil {
		return
	}
	c.unwatch = panics.AfterContext(c.request.Context(), "proxy/interrupt", c.interrupt)
	c.in.slack, c.in.moved = c.out.slack, time.Time{}
	c.extendRead()
}

// finish returns false if the request has interrupted the connection, or is about to.
func (c *conn) finish() bool {
	c.request = nil
	if c.unwatch == nil {
		return true
	}
	stopped := c.unwatch()
	// The next request starts without being watched.
	c.unwatch, c.in.moved = nil, time.Time{}
	return stopped
}

// extendRead renews the read deadline. Timeouts limit only the time without progress.
func (c *conn) extendRead() {
	now := time.Now()
	if c.sending.Load() || !c.in.due(now) {
		return
	}
	limit := c.in.limit
	if c.unwatch == nil {
		limit = watchDelay
	}
	// If this fails, the next use of the connection returns an error.
	_ = c.bare.SetReadDeadline(now.Add(limit + c.in.slack))
	c.keepInterrupted()
}

func (c *conn) extendWrite() {
	if now := time.Now(); c.out.due(now) {
		_ = c.bare.SetWriteDeadline(now.Add(c.out.limit + c.out.slack))
		c.keepInterrupted()
	}
}

// suspendReadDeadline suspends the read deadline while the client is sending a body.
func (c *conn) suspendReadDeadline() {
	c.watch()
	c.sending.Store(true)
	_ = c.bare.SetReadDeadline(time.Time{})
	c.keepInterrupted()
}

// startReadTimeout starts the read timeout for the response. It is called by the goroutine that sent the body.
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
