package httpserver

import "golang.org/x/sys/unix"

// canWatch is true on Linux, because a disconnect of the client can be detected there without reading its input.
const canWatch = true

// isGone reports whether a client has closed its side of the connection, or the whole connection. It also detects this
// if there is unread input, such as the last TLS record.
func isGone(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds[:], 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}
