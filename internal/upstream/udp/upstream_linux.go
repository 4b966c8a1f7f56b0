package udp

import (
	"errors"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/k8singress/k8singress/internal/process/loops"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// upstreamConn is the socket of a session, which is connected to an endpoint. The zero value means that no socket is
// open.
type upstreamConn struct {
	socket int
	// local is the socket's own address. The set known contains this address until the socket is closed.
	local netip.AddrPort
	known *loops.Sockets
}

func (u upstreamConn) isOpen() bool { return u.socket > 0 }

// close closes the socket, which also removes it from the epoll instance.
func (u upstreamConn) close() {
	u.known.Remove(u.local)
	_ = unix.Close(u.socket)
}

// dial opens a socket that is connected to an endpoint of a backend. The socket's own address is added to c.Outgoing
// until the socket is closed.
func (c *Settings) dial(backend, address string) (upstreamConn, error) {
	to, err := netip.ParseAddrPort(address)
	if err == nil {
		err = c.Guard.Check(backend, reach.UDP, to)
	}
	if err != nil {
		return upstreamConn{}, err
	}
	known := c.Outgoing
	host, port := to.Addr().Unmap(), int(to.Port())
	domain, remote := unix.AF_INET, unix.Sockaddr(nil)
	if host.Is4() {
		remote = &unix.SockaddrInet4{Port: port, Addr: host.As4()}
	} else {
		domain, remote = unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: host.As16()}
	}
	socket, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return upstreamConn{}, os.NewSyscallError("socket", err)
	}
	enableGRO(socket)
	if err := unix.Connect(socket, remote); err != nil {
		_ = unix.Close(socket)
		return upstreamConn{}, os.NewSyscallError("connect", err)
	}
	u := upstreamConn{socket, localOf(socket), known}
	known.Add(u.local)
	return u, nil
}

// localOf returns the local address of a connected socket.
func localOf(socket int) netip.AddrPort {
	name, err := unix.Getsockname(socket)
	if err != nil {
		return netip.AddrPort{}
	}
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(name.Addr), uint16(name.Port))
	}
	return netip.AddrPort{}
}

// enableGRO lets the kernel return several datagrams with the same sender and size as one message (generic receive
// offload). Kernels without GRO return each datagram separately.
func enableGRO(socket int) { _ = unix.SetsockoptInt(socket, unix.IPPROTO_UDP, unix.UDP_GRO, 1) }

// isUnreachable reports whether err was caused by an ICMP message: the port, host or network of the endpoint is
// unreachable.
func isUnreachable(err error) bool { return isOneOf(err, unreachable) }

var unreachable = []error{unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENOPROTOOPT}

// isBusy reports whether err means that the send buffer is full.
func isBusy(err error) bool { return isOneOf(err, busy) }

var busy = []error{unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM}

// isExhausted reports whether err means that no more sockets can be opened, because this process or the system has
// reached a limit.
func isExhausted(err error) bool { return isOneOf(err, exhausted) }

var exhausted = []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.EAGAIN,
	unix.EADDRNOTAVAIL, unix.ENOSPC}

func isOneOf(err error, targets []error) bool {
	for _, each := range targets {
		if errors.Is(err, each) {
			return true
		}
	}
	return false
}
