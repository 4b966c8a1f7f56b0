//go:build !unix

package httpserver

// canReadFirst is false, because sockets cannot be polled here.
const canReadFirst = false

func (*conn) readFirst(uintptr) bool { return true }
