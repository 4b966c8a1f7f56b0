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

// ErrHeld means that an address cannot be opened because another listener uses it.
var ErrHeld = errors.New("another process, or something else in this one, listens there; it is tried again until the port is free")

// TryAlone returns an error with ErrHeld if anything listens on an address. Caddy silently shares addresses with other
// listeners that allow it, so a caller that needs an address exclusively calls TryAlone first. Other errors are
// ignored; opening the address will return them.
func TryAlone(ctx context.Context, a caddy.NetworkAddress) error {
	if err := tryAlone(ctx, a); errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listening on %s: %w", a, ErrHeld)
	}
	return nil
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
