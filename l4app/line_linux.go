package l4app

import (
	"errors"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// line is the way from a session to its endpoint: a socket that is connected to it. The zero value is none.
type line struct{ socket int }

func (l line) isOpen() bool { return l.socket > 0 }

// close makes an epoll forget it, too.
func (l line) close() { _ = unix.Close(l.socket) }

// openLine makes a socket that is connected to an endpoint.
func openLine(address string) (line, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return line{}, err
	}
	host, port := to.Addr().Unmap(), int(to.Port())
	domain, remote := unix.AF_INET, unix.Sockaddr(nil)
	if host.Is4() {
		remote = &unix.SockaddrInet4{Port: port, Addr: host.As4()}
	} else {
		domain, remote = unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: host.As16()}
	}
	socket, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return line{}, os.NewSyscallError("socket", err)
	}
	takeTrains(socket)
	if err := unix.Connect(socket, remote); err != nil {
		_ = unix.Close(socket)
		return line{}, os.NewSyscallError("connect", err)
	}
	return line{socket}, nil
}

// takeTrains lets the kernel give a socket datagrams of one sender and size as one message. Not all kernels know that, and
// those give one datagram each.
func takeTrains(socket int) { _ = unix.SetsockoptInt(socket, unix.IPPROTO_UDP, unix.UDP_GRO, 1) }

// isUnreachable says that the endpoint, or somebody on the way, has told us that nobody is there.
func isUnreachable(err error) bool { return isOneOf(err, unreachable) }

var unreachable = []error{unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENOPROTOOPT}

// isBusy says that there is no room for a datagram.
func isBusy(err error) bool { return isOneOf(err, busy) }

var busy = []error{unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM}

// isShort says that this process, or the system, has no more sockets to give.
func isShort(err error) bool { return isOneOf(err, short) }

var short = []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.EAGAIN, unix.EADDRNOTAVAIL, unix.ENOSPC}

func isOneOf(err error, those []error) bool {
	for _, each := range those {
		if errors.Is(err, each) {
			return true
		}
	}
	return false
}
