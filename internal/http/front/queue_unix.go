//go:build unix

package front

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// waiting reports whether there are connections in the accept queue of a socket.
func waiting(raw syscall.RawConn) (some bool) {
	err := raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		some = err == nil && n > 0
	})
	return err == nil && some
}
