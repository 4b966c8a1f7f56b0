//go:build !unix

package front

import "syscall"

// waiting reports whether connections wait in the accept queue of a socket. It is always false here, because the queue
// can only be inspected on Unix.
func waiting(syscall.RawConn) bool { return false }
