//go:build !linux

package udp

import (
	"errors"
	"net"
)

// errNotLinux is why a UDP port is not served. Elsewhere the module is for development: TCP ports and HTTP are served.
var errNotLinux = errors.New("UDP ports are served on Linux only")

// Forwarder is not available on this system.
type Forwarder struct{}

// New returns an error on this system.
func New(net.PacketConn, func() *Settings, *Traffic) (*Forwarder, error) { return nil, errNotLinux }

// Close does nothing.
func (*Forwarder) Close() error { return nil }

// Drain does nothing.
func (*Forwarder) Drain() bool { return true }

// Closed returns a channel that is never closed.
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
