// Package front listens for HTTP, and serves the connections, across configurations of Caddy. Caddy opens a socket of its own for each
// configuration and closes that of the one before, with all connections that the kernel holds in its queue; its http.Server drops
// requests that are on their way at that moment. So the sockets, the http.Servers and the TLS of our listeners are here: they stay
// while configurations come and go, and each request is answered by the server of the configuration that Caddy runs.
//
// A server of Caddy takes part by Prepare, which its listener wrapper calls. design/012-the-front-owns-its-sockets.md has the reasons.
package front

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/caddyinternals"
	"github.com/k8singress/k8singress/internal/netaddr"
)

func init() {
	for _, suffix := range []string{"", "4", "6"} {
		caddy.RegisterNetwork(netaddr.Front+suffix, process.listen)
		// HTTP/3 stays with Caddy, whose sockets for UDP outlive configurations.
		caddyhttp.RegisterNetworkHTTP3(netaddr.Front+suffix, "udp"+suffix)
	}
}

// process is the front of this process. Caddy has one configuration at a time, and one list of networks.
var process = &Front{
	sockets: map[string]*socket{}, groups: map[string]*Group{}, servings: map[*caddyhttp.Server]*Serving{}, live: map[string]*claim{},
}

// Process returns the front of this process.
func Process() *Front { return process }

// Front has the sockets of all addresses, and the groups that serve their connections.
type Front struct {
	// Drive serves connections of HTTP/1.1 in place of net/http, if it is not nil. It is set before the first configuration.
	Drive Drive

	mu       sync.Mutex
	sockets  map[string]*socket
	groups   map[string]*Group
	servings map[*caddyhttp.Server]*Serving
	// live are the addresses that Open has opened.
	live map[string]*claim
}

// listen is a caddy.ListenerFunc. It returns a listener for one configuration, which has a claim to the address but no connections.
//
//nolint:revive // Caddy says how many arguments it has.
func (f *Front) listen(ctx context.Context, network, host, ports string, offset uint, config net.ListenConfig) (any, error) {
	address, err := caddy.ParseNetworkAddress(caddy.JoinNetworkAddress(network, host, ports))
	if err != nil {
		return nil, err
	}
	of, err := f.owner(ctx, address)
	if err != nil {
		return nil, err
	}
	c := &claim{front: f, of: of, written: address, address: address.At(offset), done: make(chan struct{})}
	if c.uncount, err = caddyinternals.CountListener(network, c.address.JoinHostPort(0)); err != nil {
		caddy.Log().Named("k8singress").Warn("this version of Caddy is not fully supported: each load of a configuration waits for "+
			"shutdown_delay", zap.Error(err))
	}
	if err := f.claim(ctx, c, config); err != nil {
		c.uncount()
		return nil, err
	}
	return c, nil
}

// owner finds the server that an address is opened for. It is an error if another server of the configuration listens there as
// well, which Caddy does not see, because their networks have other names.
func (f *Front) owner(ctx context.Context, address caddy.NetworkAddress) (*Serving, error) {
	var servers map[string]*caddyhttp.Server
	if of, ok := ctx.(caddy.Context); ok {
		if app, err := of.AppIfConfigured("http"); err == nil {
			servers = app.(*caddyhttp.App).Servers
		}
	}
	var owner *Serving
	for name, server := range servers {
		for _, text := range server.Listen {
			other, err := caddy.ParseNetworkAddress(text)
			switch {
			case err != nil:
			case other == address:
				f.mu.Lock()
				owner = f.servings[server]
				f.mu.Unlock()
			case other.Host == address.Host && other.Network == "tcp" && netaddr.Overlap(address, other):
				return nil, fmt.Errorf("server %s listens on %s, too", name, text)
			}
		}
	}
	if owner == nil {
		return nil, fmt.Errorf("the network %s is for servers with the listener wrapper k8singress", address.Network)
	}
	return owner, nil
}

// claim opens the socket of an address, unless it is open.
func (f *Front) claim(ctx context.Context, c *claim, config net.ListenConfig) error {
	key := c.address.String()
	for {
		f.mu.Lock()
		s := f.sockets[key]
		if s == nil {
			break
		}
		if !s.ending {
			s.add(c)
			f.mu.Unlock()
			return nil
		}
		f.mu.Unlock()
		// Two sockets would share connections, and what the old one has in its queue when it is closed is reset.
		<-s.ended
	}
	defer f.mu.Unlock()
	s, err := openSocket(ctx, f, c, config)
	if err != nil {
		return err
	}
	f.sockets[key] = s
	return nil
}

// group returns the group of a name. It is called with the lock.
func (f *Front) group(name string) *Group {
	g := f.groups[name]
	if g == nil {
		g = &Group{front: f, name: name}
		f.groups[name] = g
	}
	return g
}

// Open listens on one more TCP address for the connections of a group, which has the name of a server. What comes there is served as
// on the addresses of that server, with TLS if these have it. It is closed by Close, or when the group has no server any more.
func (f *Front) Open(ctx context.Context, address, group string) error {
	parsed, err := caddy.ParseNetworkAddress(address)
	if err != nil {
		return err
	}
	on, ok := netaddr.OnFront(parsed)
	if !ok || on.PortRangeSize() != 1 {
		return fmt.Errorf("address %s is not one TCP port", address)
	}
	f.mu.Lock()
	g := f.groups[group]
	var serving *Serving
	if g != nil && len(g.servings) > 0 {
		serving = g.current.Load()
	}
	if serving == nil || f.live[on.String()] != nil {
		f.mu.Unlock()
		return fmt.Errorf("no server %s runs, or address %s is open", group, address)
	}
	c := &claim{front: f, live: true, written: on, address: on, done: make(chan struct{}), uncount: func() {}}
	f.live[on.String()] = c
	f.mu.Unlock()
	if err = f.claim(ctx, c, net.ListenConfig{KeepAliveConfig: keepAlive(serving.Server)}); err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.live, on.String())
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c.attach(g, serving.usual(c.Addr()))
	return nil
}

// Close closes an address that Open has opened. Its connections go on.
func (f *Front) Close(address string) error {
	parsed, err := caddy.ParseNetworkAddress(address)
	if err != nil {
		return err
	}
	on, _ := netaddr.OnFront(parsed)
	f.mu.Lock()
	c := f.live[on.String()]
	f.mu.Unlock()
	if c == nil {
		return fmt.Errorf("address %s is not open", address)
	}
	return c.Close()
}

// withoutTLS says whether Caddy serves a port in the clear, whatever policies its server has: that of its http app for HTTP.
func withoutTLS(ctx caddy.Context, port string) bool {
	app, err := ctx.AppIfConfigured("http")
	if err != nil {
		return false
	}
	number := app.(*caddyhttp.App).HTTPPort
	if number == 0 {
		number = caddyhttp.DefaultHTTPPort
	}
	return port == strconv.Itoa(number)
}

// protocolsAt are those of a server at one of the addresses that it listens on.
func protocolsAt(server *caddyhttp.Server, address caddy.NetworkAddress) []string {
	i := slices.IndexFunc(server.Listen, func(text string) bool {
		parsed, err := caddy.ParseNetworkAddress(text)
		return err == nil && strings.EqualFold(parsed.String(), address.String())
	})
	if i >= 0 && i < len(server.ListenProtocols) && server.ListenProtocols[i] != nil {
		return server.ListenProtocols[i]
	}
	return server.Protocols
}
