// Package loops records the sockets that connect streams to their endpoints, in order to detect connections and
// datagrams that come back to one of our own ports. Without this check, one client of a port whose backend is the port
// itself could use up all file descriptors.
package loops

import (
	"net/netip"
	"sync"
)

// Sockets is a set of local addresses of one protocol. The zero value is empty. The methods are safe for concurrent
// use.
type Sockets struct{ open sync.Map }

// Add adds the local address of a socket. The caller removes it with Remove when it closes the socket.
func (s *Sockets) Add(local netip.AddrPort) { s.open.Store(unmapped(local), nil) }

// Remove removes an address that was added with Add.
func (s *Sockets) Remove(local netip.AddrPort) { s.open.Delete(unmapped(local)) }

// Has reports whether the peer is one of the sockets.
func (s *Sockets) Has(peer netip.AddrPort) bool {
	_, ok := s.open.Load(unmapped(peer))
	return ok
}

// unmapped returns the same value for an IPv4 address and the IPv4-mapped IPv6 address.
func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
