//go:build !linux

package l4app

import (
	"errors"
	"net"
)

// splice always returns errors.ErrUnsupported on this operating system, so that the caller copies the bytes itself.
func splice(*net.TCPConn, *net.TCPConn, func(int)) error { return errors.ErrUnsupported }
