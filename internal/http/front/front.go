// Package front listens for HTTP and serves the connections, across configurations of Caddy. On a reload Caddy opens a
// new socket and closes the old one, with all connections in the kernel's accept queue, and its http.Server drops
// requests that arrive at that moment. This package therefore owns the sockets, the http.Servers and the TLS of our
// listeners. They stay open across reloads, and each request is handled by the server of the configuration that Caddy
// currently runs.
//
// The listener wrapper of a Caddy server calls Prepare, so that this package listens for the server.
// design/012-the-front-owns-its-sockets.md gives the reasons.
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

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/caddyinternals"
	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/process/logs"
	"github.com/k8singress/k8singress/internal/process/netaddr"
)

func init() {
	for _, suffix := range []string{"", "4", "6"} {
		caddy.RegisterNetwork(netaddr.Front+suffix, process.listen)
		caddy.RegisterNetwork(netaddr.FrontQUIC+suffix, process.listenQUIC)
		caddyhttp.RegisterNetworkHTTP3(netaddr.Front+suffix, netaddr.FrontQUIC+suffix)
	}
}

// process is the only Front of this process. One is enough, because Caddy runs one configuration at a time, and
// registers networks globally.
var process = &Front{
	sockets: map[string]*socket{}, groups: map[string]*Group{}, bindings: map[*caddyhttp.Server]*Binding{},
	live:          map[string]*claim{},
	Drivers:       map[string]Driver{http2: serveByNetHTTP},
	listenerConns: map[*connSet]bool{}, clients: connlimit.New(budget.ClientBudget), requests: newRequests(),
}

// Process returns the only Front of this process.
func Process() *Front { return process }

// Front holds the listening sockets of all addresses, and the Groups that serve the accepted connections.
type Front struct {
	// Drivers maps the ALPN name of each protocol to its Driver. The Driver for "h2" is Go's HTTP/2 server. The Driver
	// for "http/1.1" must be set before the first configuration is loaded.
	Drivers map[string]Driver
	// HandedOver is called for each connection that net/http serves because the server does not allow HTTP/1.1. It is
	// also called for each request that net/http or http3 has read if the Binding has no Answer function for the
	// request, so that the Caddy server handles it. reason is one word. HandedOver may be nil. It must be set before
	// the first configuration is loaded.
	HandedOver func(reason string)
	// HandshakeFailed is called for each failed TLS handshake over TCP. reason is one of HandshakeReasons.
	// HandshakeFailed may be nil. It must be set before the first configuration is loaded.
	HandshakeFailed func(reason string)
	// RefuseRequest responds to each request that gets a 503 response because the memory budget for requests is
	// exhausted. s is the current server. began is the time at which the front began to handle the request. If
	// RefuseRequest is nil or writes no response, the response has no body. RefuseRequest must be set before the first
	// configuration is loaded.
	RefuseRequest func(s *Binding, w message.Writer, r *message.Request, began time.Time)

	clients  *connlimit.Limiter
	requests *requests

	mu       sync.Mutex
	sockets  map[string]*socket
	groups   map[string]*Group
	bindings map[*caddyhttp.Server]*Binding
	// live maps each address that Front.Open has opened to its claim. listenerConns holds the connSets with the
	// connections to these addresses. When an address is closed, its connSet stays in listenerConns until its last
	// connection has ended.
	live          map[string]*claim
	listenerConns map[*connSet]bool
}

// Listens reports whether Prepare has been called for a server, so that the front serves its connections.
func (f *Front) Listens(server *caddyhttp.Server) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bindings[server] != nil
}

// handedOver calls HandedOver, if it is set.
func (f *Front) handedOver(reason string) {
	if f.HandedOver != nil {
		f.HandedOver(reason)
	}
}

// listen is a caddy.ListenerFunc. It returns a listener of type *claim. The Accept method of this listener never
// returns a connection, because the front serves the connections itself.
//
//nolint:revive // Caddy defines the parameters.
func (f *Front) listen(ctx context.Context, network, host, ports string, offset uint,
	config net.ListenConfig) (any, error) {
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
		logs.Logger("k8singress").Warn(
			"this version of Caddy is not fully supported: each reload waits for "+
				"shutdown_delay", zap.Error(err))
	}
	if err := f.claim(ctx, c, config); err != nil {
		c.uncount()
		return nil, err
	}
	return c, nil
}

// owner returns the server for which Caddy opens an address. It returns an error if another server of the configuration
// listens on the same address with the network "tcp". Caddy does not detect this conflict, because the addresses of
// servers that use the front have a different network.
func (f *Front) owner(ctx context.Context, address caddy.NetworkAddress) (*Binding, error) {
	var servers map[string]*caddyhttp.Server
	if of, ok := ctx.(caddy.Context); ok {
		if app, err := of.AppIfConfigured("http"); err == nil {
			servers = app.(*caddyhttp.App).Servers
		}
	}
	var owner *Binding
	for name, server := range servers {
		for _, text := range server.Listen {
			other, err := caddy.ParseNetworkAddress(text)
			switch {
			case err != nil:
			case other == address:
				f.mu.Lock()
				owner = f.bindings[server]
				f.mu.Unlock()
			case other.Host == address.Host && other.Network == "tcp" && netaddr.Overlap(address, other):
				return nil, fmt.Errorf("server %s also listens on %s", name, text)
			}
		}
	}
	if owner == nil {
		return nil, fmt.Errorf("the network %s is only for servers with the listener wrapper k8singress",
			address.Network)
	}
	return owner, nil
}

// f.claim(ctx, c, config) registers c with the listening socket for its address. It opens the socket if the socket is
// not open yet.
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
		// The old socket of this address is still closing, so wait until it is closed. If both sockets were open, the
		// kernel would also queue new connections on the old socket, and reset them when that socket is closed.
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

// group returns the group with the given name, and creates it if necessary. The caller must hold f.mu.
func (f *Front) group(name string) *Group {
	g := f.groups[name]
	if g == nil {
		g = &Group{front: f, name: name}
		f.groups[name] = g
	}
	return g
}

// withoutTLS reports whether a port is the HTTP port of Caddy's http app. Caddy serves that port without TLS, even if
// the server has TLS connection policies.
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

// protocolsAt returns the protocols that a server serves at one of its listen addresses.
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
