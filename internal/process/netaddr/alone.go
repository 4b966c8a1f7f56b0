package netaddr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/caddyserver/caddy/v2"
)

// ErrHeld means that a server cannot listen on an address because another listener uses the address.
var ErrHeld = errors.New(
	"another process, or another part of this process, already listens on this address; the controller retries " +
		"until the port is free")

// TryAlone returns an error that wraps ErrHeld if anything listens on an address. Caddy silently shares addresses with
// other listeners that allow it, so a caller that needs an address exclusively calls TryAlone first. Other errors are
// ignored, because listening on the address will return them.
func TryAlone(ctx context.Context, a caddy.NetworkAddress) error {
	if err := tryAlone(ctx, a); errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listening on %s: %w", a, ErrHeld)
	}
	return nil
}

// ErrOthers means that another process listens on an address that a server is configured to listen on.
var ErrOthers = errors.New(
	"another process already listens on this address, and each of the two processes would get a part of the " +
		"requests: end the other process, choose another address, or set the option share_ports if both processes " +
		"should serve requests")

// TryOthers returns an error that wraps ErrOthers if another process listens on an address. Other listeners of this
// process are ignored, because Caddy opens the addresses of a new configuration before it closes the addresses of the
// old one. Unix sockets are not checked, since the file of a Unix socket may outlive the process that created it.
func TryOthers(ctx context.Context, a caddy.NetworkAddress) error {
	if transport := Transport(a.Network); transport != "tcp" && transport != "udp" || a.StartPort == 0 || isOurs(a) {
		return nil
	}
	if err := tryAlone(ctx, a); errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listening on %s: %w", a, ErrOthers)
	}
	return nil
}

// isOurs reports whether Caddy has a listener in this process whose address overlaps with a, which must have a single
// port. Caddy locks parts of its list of listeners while it opens a listener, so isOurs cannot read the list. Instead,
// it looks up each IP address of the machine.
func isOurs(a caddy.NetworkAddress) bool {
	hosts := []string{a.Host, "", "0.0.0.0", "::", "localhost"}
	// If the interfaces cannot be read, listeners on the unspecified addresses are still found.
	interfaces, _ := net.InterfaceAddrs()
	for _, each := range interfaces {
		if network, ok := each.(*net.IPNet); ok {
			hosts = append(hosts, network.IP.String())
		}
	}
	for _, host := range hosts {
		for _, suffix := range []string{"", "4", "6"} {
			other := a
			other.Network, other.Host = Transport(a.Network)+suffix, host
			if Overlap(a, other) && caddy.ListenerUsage(other.Network, other.JoinHostPort(0)) > 0 {
				return true
			}
		}
	}
	return false
}

func tryAlone(ctx context.Context, a caddy.NetworkAddress) error {
	var config net.ListenConfig
	for _, each := range a.Expand() {
		var socket io.Closer
		var err error
		if Transport(each.Network) == "udp" {
			socket, err = config.ListenPacket(ctx, each.Network, each.JoinHostPort(0))
		} else {
			socket, err = config.Listen(ctx, each.Network, each.JoinHostPort(0))
		}
		if err != nil {
			return err
		}
		if err := socket.Close(); err != nil {
			return err
		}
	}
	return nil
}
