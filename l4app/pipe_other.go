//go:build !linux

package l4app

import (
	"errors"
	"net"
)

// splice returns errors.ErrUnsupported, so the caller copies the bytes.
func splice(*net.TCPConn, *net.TCPConn, func(int)) error { return errors.ErrUnsupported }
