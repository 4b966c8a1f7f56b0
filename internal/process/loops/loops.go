// Package loops records the local addresses of the sockets that connect TCP and UDP ports to their endpoints, in order
// to detect connections and datagrams that come back to one of our own ports. Without this check, if the backend of a
// port is the port itself, one client could use up all file descriptors.
package loops

import (
	"net/netip"
	"sync"
)

// Sockets is a set of local addresses of one protocol. The zero value is empty. The methods are safe for concurrent
// use.
type Sockets struct{ open sync.Map }

// Add adds the local address of a socket. The caller must call Remove when it closes the socket.
func (s *Sockets) Add(local netip.AddrPort) { s.open.Store(unmapped(local), nil) }

// Remove removes an address that was added with Add.
func (s *Sockets) Remove(local netip.AddrPort) { s.open.Delete(unmapped(local)) }

// Has reports whether peer is the local address of a socket in the set.
func (s *Sockets) Has(peer netip.AddrPort) bool {
	_, ok := s.open.Load(unmapped(peer))
	return ok
}

// unmapped converts an IPv4-mapped IPv6 address to IPv4, so that both forms of an address are equal.
func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
