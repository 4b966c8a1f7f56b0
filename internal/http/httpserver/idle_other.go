//go:build !unix

package httpserver

// canReadFirst is false on systems other than Unix, because their sockets cannot be polled.
const canReadFirst = false

func (*conn) readFirst(uintptr) bool { return true }
