package l4app

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// client is one client of a UDP socket, as a connection: each Read returns one datagram, each Write sends one. When
// nothing was read or written for a time, Read returns io.EOF.
type client struct {
	socket   net.PacketConn
	from     net.Addr
	idle     time.Duration
	received chan []byte
	deadline *deadline

	mu     sync.Mutex
	active time.Time
	closed chan struct{}
}

func newClient(socket net.PacketConn, from net.Addr, idle time.Duration) *client {
	return &client{
		socket: socket, from: from, idle: idle, active: time.Now(),
		received: make(chan []byte, queued), deadline: newDeadline(), closed: make(chan struct{}),
	}
}

// Read returns the next datagram. What does not fit into b is lost.
func (c *client) Read(b []byte) (int, error) {
	data, err := c.next()
	return copy(b, data), err
}

// next returns the next datagram.
func (c *client) next() ([]byte, error) {
	for {
		timer := time.NewTimer(c.rest())
		select {
		case data := <-c.received:
			timer.Stop()
			c.touch()
			return data, nil
		case <-c.closed:
			timer.Stop()
			return nil, io.EOF
		case <-c.deadline.passed():
			timer.Stop()
			return nil, os.ErrDeadlineExceeded
		case <-timer.C:
			if c.rest() <= 0 {
				// What the client sends from now on makes a new connection.
				_ = c.Close()
				return nil, io.EOF
			}
		}
	}
}

// Write sends one datagram to the client.
func (c *client) Write(b []byte) (int, error) {
	if c.isClosed() {
		return 0, net.ErrClosed
	}
	c.touch()
	return c.socket.WriteTo(b, c.from)
}

// Close ends the connection; the socket stays.
func (c *client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isClosed() {
		close(c.closed)
	}
	return nil
}

func (c *client) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// rest is how long the connection may still be idle.
func (c *client) rest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.active.Add(c.idle))
}

func (c *client) touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active = time.Now()
}

// LocalAddr is the address of the socket.
func (c *client) LocalAddr() net.Addr { return c.socket.LocalAddr() }

// RemoteAddr is the address of the client.
func (c *client) RemoteAddr() net.Addr { return c.from }

// SetDeadline is about reading only: a datagram is sent without waiting.
func (c *client) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline sets when Read gives up. The zero time stands for never.
func (c *client) SetReadDeadline(t time.Time) error {
	c.deadline.set(t)
	return nil
}

// SetWriteDeadline does nothing: a datagram is sent without waiting.
func (c *client) SetWriteDeadline(time.Time) error { return nil }
