package k8singress

import (
	"net"
	"sync/atomic"
	"time"
)

// handshaking is a connection of which net/http has not cleared the deadlines yet, which it does after the TLS handshake.
// Until then none is further away than the limit. It belongs to one goroutine until then, but for Close.
type handshaking struct {
	net.Conn
	limit time.Duration
	done  atomic.Bool

	passing *passing
	// looked says that it is known whose connection it is. passed says that it is not the server's.
	looked bool
	passed atomic.Bool
	// until is the deadline for reading.
	until time.Time
	// ahead is what was read to find that out and has not been handed out yet, a part of buffer.
	ahead  []byte
	buffer *[]byte
}

// Read finds out first whose connection it is, if there are hosts whose TLS ends elsewhere.
func (c *handshaking) Read(b []byte) (int, error) {
	if !c.looked {
		c.looked = true
		if c.passing.table.PassesAny() {
			if err := c.look(); err != nil {
				return 0, err
			}
		}
	}
	if c.ahead != nil {
		return c.replay(b), nil
	}
	if c.passed.Load() {
		return 0, errPassed
	}
	return c.Conn.Read(b)
}

func (c *handshaking) Write(b []byte) (int, error) {
	if c.passed.Load() {
		return 0, errPassed
	}
	return c.Conn.Write(b)
}

// Close leaves a connection alone that is passed through.
func (c *handshaking) Close() error {
	if c.passed.Load() {
		return nil
	}
	return c.Conn.Close()
}

// CloseWrite is closeWrite.
func (c *handshaking) CloseWrite() error {
	if c.passed.Load() {
		return nil
	}
	return closeWrite(c.Conn)
}

func (c *handshaking) SetDeadline(t time.Time) error {
	return c.deadline(t, true, c.Conn.SetDeadline)
}

func (c *handshaking) SetReadDeadline(t time.Time) error {
	return c.deadline(t, true, c.Conn.SetReadDeadline)
}

func (c *handshaking) SetWriteDeadline(t time.Time) error {
	return c.deadline(t, false, c.Conn.SetWriteDeadline)
}

func (c *handshaking) deadline(t time.Time, read bool, set func(time.Time) error) error {
	if c.passed.Load() {
		return nil
	}
	if t = c.clamp(t); read && !c.looked {
		c.until = t
	}
	return set(t)
}

func (c *handshaking) clamp(t time.Time) time.Time {
	switch {
	case c.done.Load():
		return t
	case t.IsZero():
		c.done.Store(true)
		return t
	}
	if latest := time.Now().Add(c.limit); t.After(latest) {
		return latest
	}
	return t
}
