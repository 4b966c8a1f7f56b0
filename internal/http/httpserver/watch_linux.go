package httpserver

import "golang.org/x/sys/unix"

// canWatch is true on Linux, which can detect that a client has disconnected without reading from the connection.
const canWatch = true

// isGone reports whether the client has closed the connection or its side of the connection. It works even if there is
// unread input, such as the last TLS record.
func isGone(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds[:], 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}
