//go:build !linux

package udp

import (
	"errors"
	"net"
)

// errNotLinux is returned for each UDP port on operating systems other than Linux. There, the module is only meant for
// development, and serves only HTTP and TCP ports.
var errNotLinux = errors.New("UDP ports are served on Linux only")

// Forwarder is not implemented on this operating system.
type Forwarder struct{}

// New always returns an error on this operating system.
func New(net.PacketConn, func() *Settings, *Traffic) (*Forwarder, error) { return nil, errNotLinux }

// Close does nothing.
func (*Forwarder) Close() error { return nil }

// Drain does nothing and returns true.
func (*Forwarder) Drain() bool { return true }

// Closed returns nil.
func (*Forwarder) Closed() <-chan struct{} { return nil }

// Run does nothing.
func (*Forwarder) Run() {}

type (
	upstreamConn struct{}
	destination  struct{}
)

func (*Settings) dial(_, _ string) (upstreamConn, error) { return upstreamConn{}, errNotLinux }
func (upstreamConn) isOpen() bool                        { return false }
func (upstreamConn) close()                              {}
func isExhausted(error) bool                             { return false }
