package httpserver

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// acknowledged returns the number of bytes that the client has acknowledged on its TCP connection so far. It returns 0
// if the number is not known.
func acknowledged(raw syscall.RawConn) (bytes uint64) {
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			bytes = info.Bytes_acked
		}
	})
	return bytes
}
