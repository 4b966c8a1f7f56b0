//go:build !unix

package httpserver

// canReadFirst says that sockets are read as everything else.
const canReadFirst = false

func (*conn) readFirst(uintptr) bool { return true }
