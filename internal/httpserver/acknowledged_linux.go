package httpserver

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// acknowledged returns how many bytes a client has acknowledged; 0 is not known.
func acknowledged(raw syscall.RawConn) (bytes uint64) {
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			bytes = info.Bytes_acked
		}
	})
	return bytes
}
