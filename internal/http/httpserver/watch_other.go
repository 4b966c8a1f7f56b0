//go:build !linux

package httpserver

// canWatch is false, because a disconnect of the client is only detected when a write fails.
const canWatch = false

func isGone(uintptr) bool { return false }
