package k8singress

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/process/caddyinternals"
	"github.com/k8singress/k8singress/internal/process/netaddr"
)

func init() {
	for _, suffix := range []string{"", "4", "6"} {
		caddy.RegisterNetwork(netaddr.Probes+suffix, listenForProbes)
		caddyhttp.RegisterNetworkHTTP3(netaddr.Probes+suffix, "udp"+suffix)
	}
}

// listenForProbes is a caddy.ListenerFunc for the health port. Unlike Caddy, it returns an error if another process
// already listens on the same address, unless the option share_ports is set. Otherwise the kernel would distribute
// connections among both processes, and the kubelet could probe the wrong process.
//
//nolint:revive // Caddy defines the parameters.
func listenForProbes(
	ctx context.Context, network, host, ports string, offset uint, config net.ListenConfig,
) (any, error) {
	written, err := caddy.ParseNetworkAddress(caddy.JoinNetworkAddress(network, host, ports))
	if err != nil {
		return nil, err
	}
	address := netaddr.OffFront(written.At(offset))
	if err := tryProbes(ctx, address); err != nil {
		return nil, err
	}
	opened, err := address.Listen(ctx, 0, config)
	if err != nil {
		return nil, err
	}
	// Add this listener to Caddy's count of listeners for the address. Without this, Caddy would wait for
	// shutdown_delay at each configuration reload. The error is ignored, because package front logs a warning if this
	// does not work.
	uncount, _ := caddyinternals.CountListener(network, address.JoinHostPort(0))
	return &probeSocket{opened.(net.Listener), uncount}, nil
}

// tryProbes returns an error if the health port is already used by another process or by another server of the
// configuration.
func tryProbes(ctx context.Context, address caddy.NetworkAddress) error {
	if of, ok := ctx.(caddy.Context); ok {
		if app, err := of.AppIfConfigured("http"); err == nil {
			if err := tryServers(app.(*caddyhttp.App).Servers, address); err != nil {
				return err
			}
		}
		if app, err := of.AppIfConfigured("k8singress"); err == nil && app.(*App).SharePorts {
			return nil
		}
	}
	return netaddr.TryOthers(ctx, address)
}

// tryServers returns an error if another server of the configuration listens on the address of the health port, but on
// a network other than netaddr.Probes. Caddy does not detect this conflict, because it only compares addresses of the
// same network.
func tryServers(servers map[string]*caddyhttp.Server, address caddy.NetworkAddress) error {
	for name, server := range servers {
		for _, text := range server.Listen {
			other, err := caddy.ParseNetworkAddress(text)
			if err != nil || strings.HasPrefix(other.Network, netaddr.Probes) || other.Host != address.Host {
				continue
			}
			if netaddr.Overlap(other, address) {
				return fmt.Errorf("server %s also listens on %s", name, netaddr.OffFront(other))
			}
		}
	}
	return nil
}

// probeSocket is the listening socket of the health port. Each configuration has its own.
type probeSocket struct {
	net.Listener
	uncount func()
}

// Close closes the socket. Caddy may call it more than once.
func (s *probeSocket) Close() error {
	s.uncount()
	return s.Listener.Close()
}
