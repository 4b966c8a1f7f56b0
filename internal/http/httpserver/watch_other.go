//go:build !linux

package httpserver

// canWatch is false on systems other than Linux. A disconnect of the client is then only detected when a write fails.
const canWatch = false

func isGone(uintptr) bool { return false }
