package proxy

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/http1"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/pools"
)

const (
	// renew is how often a deadline is moved, at most: to move one costs as much as a small write. For short timeouts it is
	// a part of them.
	renew      = time.Second
	renewParts = 8
	// glance is how long an endpoint may take before the client is watched, which costs more than most answers do: a client
	// who goes earlier is noticed up to twice as late.
	glance = 100 * time.Millisecond
	// maxHead is the size of the largest head of an answer, as nginx would hold in its buffers many times over.
	maxHead = 1 << 20
)

// small is for heads, large for bodies.
var small, large = pools.NewBuffers("proxy: 4 KiB", 4<<10), pools.NewBuffers("proxy: 32 KiB", 32<<10)

// conn is a connection to an endpoint. It belongs to one request at a time.
type conn struct {
	key key
	// share has the descriptor of the connection, until close. It is nil for one without.
	share *budget.Share
	// socket is what is spoken on; bare is the TCP connection below it. records is nil without TLS.
	socket, bare net.Conn
	records      *records
	raw          syscall.RawConn
	// buffer has what was read and is not used yet between at and end. The connection owns one only while it has a request.
	buffer  pools.Buffer
	at, end int
	// head and answer are of the last answer, fields those of the last request. body is what is left of the answer.
	head   http1.ResponseHead
	answer message.Response
	fields message.Fields
	body   answerBody
	// since is when it became idle. most and lifetime are how many such there may be of its key, and for how long; zero is as the pool has
	// it.
	since    time.Time
	most     int
	lifetime time.Duration
	// questions counts those to an external service.
	questions int
	// request is the one that the connection is for. unwatch is set once its end interrupts the connection.
	request *message.Request
	unwatch func() bool
	// in and out are for reads and writes that take so long. sending says that only the client is waited for, or another
	// goroutine moves out.
	in, out deadline
	sending atomic.Bool
	// touched says that a part of an answer has come in since the request.
	touched     bool
	interrupted atomic.Bool
	// These are for quiet, which is asked before each request.
	peek               func(fd uintptr)
	one                [1]byte
	nothing, something bool
}

// deadline ends a connection on which nothing happens for too long.
type deadline struct {
	limit, slack time.Duration
	// moved is when it was set last.
	moved time.Time
}

// due says whether it has to be moved. It ends up to a second late, or an eighth.
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
		// Without it, quiet says yes.
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

// closeUnless closes the connection after a panic: its request is not over. An upload to it ends so, and its descriptor is free again.
func (c *conn) closeUnless(over *bool) {
	if !*over {
		c.close()
	}
}

// buffered is what has come in and is not used yet.
func (c *conn) buffered() []byte { return c.buffer.Bytes()[c.at:c.end] }

// fill reads more into the buffer, which grows where it is full.
func (c *conn) fill() error {
	if c.at == c.end {
		c.at, c.end = 0, 0
	}
	if c.end == len(c.buffer.Bytes()) {
		c.grow()
	}
	n, err := c.read(c.buffer.Bytes()[c.end:])
	if c.end += n; n > 0 {
		// An error shows again.
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

// read reads from the endpoint.
func (c *conn) read(b []byte) (int, error) {
	// Before, not after: in between a slow client may have taken its time.
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

// begin prepares the connection for a request, until finish.
func (c *conn) begin(r *message.Request, reads, writes time.Duration) {
	c.buffer = small.Get()
	c.at, c.end, c.touched = 0, 0, false
	c.interrupted.Store(false)
	c.request = r
	slack := min(renew, reads/renewParts, writes/renewParts)
	if c.in.limit != reads || c.out.limit != writes {
		c.in, c.out = deadline{limit: reads, slack: slack}, deadline{limit: writes, slack: slack}
	}
	if slack < renew {
		c.watch()
		return
	}
	c.in.slack = glance
}

// watch lets the end of the request interrupt the connection, from now on and for as long as it may take.
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
	// The next request is not watched at first.
	c.unwatch, c.in.moved = nil, time.Time{}
	return stopped
}

// extendRead moves the deadline of reads: the timeouts are for times in which nothing happens.
func (c *conn) extendRead() {
	now := time.Now()
	if c.sending.Load() || !c.in.due(now) {
		return
	}
	limit := c.in.limit
	if c.unwatch == nil {
		limit = glance
	}
	// An error shows when the connection is used.
	_ = c.bare.SetReadDeadline(now.Add(limit + c.in.slack))
	c.stopAgain()
}

func (c *conn) extendWrite() {
	if now := time.Now(); c.out.due(now) {
		_ = c.bare.SetWriteDeadline(now.Add(c.out.limit + c.out.slack))
		c.stopAgain()
	}
}

// sends has reads wait without a limit, for as long as the client takes to send a body.
func (c *conn) sends() {
	c.watch()
	c.sending.Store(true)
	_ = c.bare.SetReadDeadline(time.Time{})
	c.stopAgain()
}

// sent gives the endpoint the time to answer from now on. It is called by the goroutine that has sent the body.
func (c *conn) sent() {
	c.sending.Store(false)
	_ = c.bare.SetReadDeadline(time.Now().Add(c.in.limit + c.out.slack))
	c.stopAgain()
}

// interrupt ends whatever the connection waits for, now and later. It may be called from any goroutine.
func (c *conn) interrupt() {
	c.interrupted.Store(true)
	c.stopAgain()
}

func (c *conn) stopAgain() {
	if c.interrupted.Load() {
		_ = c.bare.SetDeadline(time.Unix(1, 0))
	}
}
