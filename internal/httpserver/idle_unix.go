//go:build unix

package httpserver

import (
	"errors"
	"io"
	"syscall"
)

// canReadFirst says that a socket can be read when there is something, with a buffer that is taken then.
const canReadFirst = true

// readFirst reads what has come, and returns false if nothing has.
func (c *conn) readFirst(fd uintptr) bool {
	for {
		n, err := syscall.Read(int(fd), c.input.space())
		switch {
		case err == nil && n > 0:
			c.firstCount = n
			return true
		case errors.Is(err, syscall.EINTR):
			continue
		}
		c.input.release()
		if errors.Is(err, syscall.EAGAIN) {
			return false
		}
		if c.firstErr = err; err == nil {
			c.firstErr = io.EOF
		}
		return true
	}
}
