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
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/caddyinternals"
	"github.com/k8singress/k8singress/internal/connlimit"
	"github.com/k8singress/k8singress/internal/logs"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/netaddr"
)

func init() {
	for _, suffix := range []string{"", "4", "6"} {
		caddy.RegisterNetwork(netaddr.Front+suffix, process.listen)
		caddy.RegisterNetwork(netaddr.FrontQUIC+suffix, process.listenQUIC)
		caddyhttp.RegisterNetworkHTTP3(netaddr.Front+suffix, netaddr.FrontQUIC+suffix)
	}
}

// process is the front of this process. Caddy has one configuration at a time, and one list of networks.
var process = &Front{
	sockets: map[string]*socket{}, groups: map[string]*Group{}, servings: map[*caddyhttp.Server]*Serving{}, live: map[string]*claim{},
	beside: map[*cohort]bool{}, clients: connlimit.New(budget.ClientBudget), requests: newRequests(),
}

// Process returns the front of this process.
func Process() *Front { return process }

// Front has the sockets of all addresses, and the groups that serve their connections.
type Front struct {
	// Drive serves connections of HTTP/1.1 in place of net/http, if it is not nil. It is set before the first configuration.
	Drive Drive
	// HandedOver is told, with the reason in one word, of each connection of HTTP/1.1 that goes to net/http in place of Drive, and of
	// each request by HTTP/2 that a server answers in place of Serving.Answer. It is nil, or set as Drive is.
	HandedOver func(reason string)
	// HandshakeFailed is called with the reason for each TLS handshake over TCP that fails. It is nil, or set as Drive is.
	HandshakeFailed func(reason string)
	// RequestRefused is called for each request that was answered with 503 because there was no room for it. It is nil,
	// or set as Drive is.
	RequestRefused func(w message.Writer, r *message.Request, began time.Time)

	clients  *connlimit.Limiter
	requests *requests

	mu       sync.Mutex
	sockets  map[string]*socket
	groups   map[string]*Group
	servings map[*caddyhttp.Server]*Serving
	// live are the addresses that Open has opened, and beside what serves their connections, also after they were closed.
	live   map[string]*claim
	beside map[*cohort]bool
}

// Listens says whether the connections of a server that has been prepared are the front's.
func (f *Front) Listens(server *caddyhttp.Server) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.servings[server] != nil
}

// handedOver tells of a connection or a request that is left to others.
func (f *Front) handedOver(reason string) {
	if f.HandedOver != nil {
		f.HandedOver(reason)
	}
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
		logs.Logger("k8singress").Warn("this version of Caddy is not fully supported: each load of a configuration waits for "+
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
	if err := c.tryAddress(ctx); err != nil {
		return err
	}
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
