//go:build !unix

package front

import "syscall"

// waiting reports whether there are connections in the accept queue of a socket. On this platform it always returns
// false, because the queue can only be inspected on Unix.
func waiting(syscall.RawConn) bool { return false }
