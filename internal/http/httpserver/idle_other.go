//go:build !unix

package httpserver

// canReadFirst is false on systems other than Unix: their sockets cannot be polled, so an idle connection needs a small
// buffer.
const canReadFirst = false

func (*Conn) readFirst(uintptr) bool { return true }
