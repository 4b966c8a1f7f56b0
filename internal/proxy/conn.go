package proxy

import (
	"bufio"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// renew is how often a deadline is moved, at most: to move one costs as much as a small write. For short timeouts it is
	// a part of them.
	renew      = time.Second
	renewParts = 8
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
	// since is when it became idle.
	since time.Time
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
	c.ended = err
	if n > 0 {
		c.touched = true
		c.headBytes += n
	}
	return n, err
}

// begin prepares the connection for a request. After it, interrupt may be called.
func (c *conn) begin(reads, writes time.Duration) {
	c.touched, c.headBytes, c.countsHead = false, 0, true
	c.interrupted.Store(false)
	if c.reads != reads || c.writes != writes {
		c.reads, c.writes, c.moved = reads, writes, time.Time{}
		c.slack = min(renew, reads/renewParts, writes/renewParts)
	}
	c.extend()
}

// extend moves the deadlines: the timeouts are for times in which nothing happens. They end up to a second late, or an eighth.
func (c *conn) extend() {
	now := time.Now()
	if now.Sub(c.moved) < c.slack {
		return
	}
	c.moved = now
	// An error shows when the connection is used.
	_ = c.socket.SetReadDeadline(now.Add(c.reads + c.slack))
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
