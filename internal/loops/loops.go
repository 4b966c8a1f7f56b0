// Package loops knows the sockets by which streams reach their endpoints, so that a connection or a datagram that comes back in on a
// port of our own is noticed: without that, one client could have a port that leads to itself take all file descriptors.
package loops

import (
	"net/netip"
	"sync"
)

// Sockets are local addresses of one protocol. The zero value has none. The methods may be called from any goroutine.
type Sockets struct{ open sync.Map }

// Add notes the local address of a socket, until Remove.
func (s *Sockets) Add(local netip.AddrPort) { s.open.Store(unmapped(local), nil) }

// Remove is the end of Add.
func (s *Sockets) Remove(local netip.AddrPort) { s.open.Delete(unmapped(local)) }

// Has says whether a peer is one of the sockets.
func (s *Sockets) Has(peer netip.AddrPort) bool {
	_, ok := s.open.Load(unmapped(peer))
	return ok
}

// unmapped is the same for an IPv4 address, whichever kind of socket it came from.
func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
