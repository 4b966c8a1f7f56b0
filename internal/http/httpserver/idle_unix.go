//go:build unix

package httpserver

import (
	"errors"
	"io"
	"syscall"
)

// canReadFirst is true on Unix: an idle connection can wait for input without holding a buffer.
const canReadFirst = true

// readFirst reads the input that is available on the socket fd. It returns false if no input has arrived yet.
func (c *Conn) readFirst(fd uintptr) bool {
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
