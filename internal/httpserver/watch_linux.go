package httpserver

import "golang.org/x/sys/unix"

// canWatch says that it can be found out whether a client has gone, without reading what it has sent.
const canWatch = true

// isGone says whether a client has ended its direction of a connection, or all of it. Bytes in front of the end, such as the last
// record of TLS, do not hide it.
func isGone(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds[:], 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}
