//go:build !linux

package httpserver

// canWatch says that only a failed write shows that a client has gone.
const canWatch = false

func isGone(uintptr) bool { return false }
