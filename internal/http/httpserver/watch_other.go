//go:build !linux

package httpserver

// canWatch is false on systems other than Linux, where a disconnect of the client is only detected when a write fails.
const canWatch = false

func isGone(uintptr) bool { return false }
