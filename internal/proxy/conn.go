package proxy

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"
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

// conn is a connection to an endpoint. It belongs to one request at a time.
type conn struct {
	socket  net.Conn
	raw     syscall.RawConn
	address string
	reader  *bufio.Reader
	writer  *bufio.Writer
	// head is the head of the last answer.
	head head
	// since is when it became idle.
	since time.Time
	// request is the one that the connection is for. unwatch is set once its end interrupts the connection.
	request *http.Request
	unwatch func() bool
	// moved is when the deadlines were set last, for reads and writes that take so long.
	moved                time.Time
	reads, writes, slack time.Duration
	// headBytes is the size of the head that comes in, while countsHead says so.
	headBytes  int
	countsHead bool
	// ended is why nothing more can be read.
	ended error
	// touched says that a part of an answer has come in since the request.
	touched     bool
	interrupted atomic.Bool
	// peek, one and nothing are for quiet, which is asked before each request.
	peek    func(fd uintptr)
	one     [1]byte
	nothing bool
}

func newConn(socket net.Conn, address string) *conn {
	c := &conn{socket: socket, address: address}
	c.reader, c.writer = bufio.NewReader(c), bufio.NewWriter(socket)
	if tcp, ok := socket.(syscall.Conn); ok {
		// Without it, quiet says yes.
		c.raw, _ = tcp.SyscallConn()
	}
	return c
}

func (c *conn) close() { _ = c.socket.Close() }

var errHeadTooLarge = errors.New("the head of the answer is too large")

// Read is what reader reads from.
func (c *conn) Read(b []byte) (int, error) {
	if c.countsHead && c.headBytes > maxHead {
		return 0, errHeadTooLarge
	}
	// Before, not after: in between a slow client may have taken its time.
	c.extend()
	n, err := c.socket.Read(b)
	if err != nil && n == 0 && c.unwatch == nil && errors.Is(err, os.ErrDeadlineExceeded) {
		c.watch()
		n, err = c.socket.Read(b)
	}
	c.ended = err
	if n > 0 {
		c.touched = true
		c.headBytes += n
	}
	return n, err
}

// begin prepares the connection for a request, until end.
func (c *conn) begin(r *http.Request, reads, writes time.Duration) {
	c.touched, c.headBytes, c.countsHead = false, 0, true
	c.interrupted.Store(false)
	c.request = r
	if c.reads != reads || c.writes != writes {
		c.reads, c.writes, c.moved = reads, writes, time.Time{}
	}
	if c.slack = min(renew, reads/renewParts, writes/renewParts); c.slack < renew {
		c.watch()
		return
	}
	c.slack = glance
	c.extend()
}

// watch lets the end of the request interrupt the connection, from now on and for as long as it may take.
func (c *conn) watch() {
	if c.unwatch != nil {
		return
	}
	c.unwatch = context.AfterFunc(c.request.Context(), c.interrupt)
	c.slack, c.moved = min(renew, c.reads/renewParts, c.writes/renewParts), time.Time{}
	c.extend()
}

// end returns false if the request has interrupted the connection, or is about to.
func (c *conn) end() bool {
	c.request = nil
	if c.unwatch == nil {
		return true
	}
	stopped := c.unwatch()
	// The next request is not watched at first.
	c.unwatch, c.moved = nil, time.Time{}
	return stopped
}

// extend moves the deadlines: the timeouts are for times in which nothing happens. They end up to a second late, or an eighth.
func (c *conn) extend() {
	now := time.Now()
	if now.Sub(c.moved) < c.slack {
		return
	}
	c.moved = now
	reads := c.reads
	if c.unwatch == nil {
		reads = glance
	}
	// An error shows when the connection is used.
	_ = c.socket.SetReadDeadline(now.Add(reads + c.slack))
	_ = c.socket.SetWriteDeadline(now.Add(c.writes + c.slack))
	if c.interrupted.Load() {
		c.stop()
	}
}

// interrupt ends whatever the connection waits for, now and later. It may be called from any goroutine.
func (c *conn) interrupt() {
	c.interrupted.Store(true)
	c.stop()
}

func (c *conn) stop() { _ = c.socket.SetDeadline(time.Unix(1, 0)) }
