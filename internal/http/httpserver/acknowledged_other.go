//go:build !linux

package httpserver

import "syscall"

func acknowledged(syscall.RawConn) uint64 { return 0 }
