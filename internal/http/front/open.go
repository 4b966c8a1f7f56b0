package front

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// Opened represents an additional address of a server, which Front.Open has opened. It stays open until Close is called
// or the server stops.
type Opened struct{ claim *claim }

// IsOpen reports whether the address is still open: Close was not called, and the server has not stopped.
func (o *Opened) IsOpen() bool {
	o.claim.front.mu.Lock()
	defer o.claim.front.mu.Unlock()
	return !o.claim.closed
}

// Ended reports whether the address is closed and its last connection has ended.
func (o *Opened) Ended() bool {
	o.claim.front.mu.Lock()
	defer o.claim.front.mu.Unlock()
	select {
	case <-o.claim.conns.ended:
		return true
	default:
		return false
	}
}

// Close closes the address. Requests in progress are finished, and clients are asked to close their connections. Close
// may be called more than once, and does not block.
func (o *Opened) Close() {
	// Ignore the error: closing a claim always succeeds.
	_ = o.claim.Close()
}

// ErrNotStarted is returned if a server is not running yet, because Caddy is still loading its configuration.
var ErrNotStarted = errors.New("the server has not started yet")

// Addresses returns the addresses at which a port can be opened for a running server: each host on which the server
// listens over TCP, with the given port. If the server is not running, Addresses returns an error, which is
// ErrNotStarted if the server is about to start.
func (f *Front) Addresses(server string, port uint16) ([]caddy.NetworkAddress, error) {
	f.mu.Lock()
	binding, starts := f.binding(server), f.starts(server)
	f.mu.Unlock()
	switch {
	case binding == nil && starts:
		return nil, ErrNotStarted
	case binding == nil:
		return nil, fmt.Errorf("server %s is not running", server)
	}
	var all []caddy.NetworkAddress
	for _, text := range binding.Server.Listen {
		at, err := caddy.ParseNetworkAddress(text)
		if err != nil || netaddr.Transport(at.Network) != "tcp" {
			continue
		}
		at = netaddr.OffFront(at)
		at.StartPort, at.EndPort = uint(port), uint(port)
		if !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	if all == nil {
		return nil, fmt.Errorf("the server %s listens on no TCP address", server)
	}
	return all, nil
}

// Runs reports whether a server with this name is running.
func (f *Front) Runs(server string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.binding(server) != nil
}

// Expects reports whether a server with this name is running, or is about to start because Caddy is loading its
// configuration.
func (f *Front) Expects(server string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.binding(server) != nil || f.starts(server)
}

// binding returns the running server with the given name, or nil if there is no such server. The caller must hold f.mu.
func (f *Front) binding(name string) *Binding {
	if g := f.groups[name]; g != nil && len(g.bindings) > 0 {
		return g.current.Load()
	}
	return nil
}

// starts reports whether Prepare was called for a server with the given name that is not running yet. The caller must
// hold f.mu.
func (f *Front) starts(name string) bool {
	for _, s := range f.bindings {
		if s.name() == name && s.group == nil {
			return true
		}
	}
	return false
}

// Open makes a running server listen on an additional TCP address with a single port. Requests that arrive there are
// handled by AnswerOnListener of the current server, with the limits of that server, and with TLS if the server uses
// TLS. PortOf returns the port for connections to this address. If another listener uses the address, Open returns an
// error that wraps netaddr.ErrHeld.
func (f *Front) Open(ctx context.Context, address caddy.NetworkAddress, server string) (*Opened, error) {
	on, ok := netaddr.OnFront(address)
	if !ok || on.PortRangeSize() != 1 {
		return nil, fmt.Errorf("address %s is not a single TCP port", address)
	}
	f.mu.Lock()
	binding := f.binding(server)
	if binding == nil || f.live[on.String()] != nil {
		f.mu.Unlock()
		return nil, fmt.Errorf("server %s is not running, or address %s is already open", server, address)
	}
	c := &claim{front: f, live: true, written: on, address: on, done: make(chan struct{}), uncount: func() {}}
	f.live[on.String()] = c
	f.mu.Unlock()
	if err := f.claim(ctx, c, net.ListenConfig{KeepAliveConfig: keepAlive(binding.Server)}); err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.live, on.String())
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.groups[server]
	if len(g.bindings) == 0 {
		c.release()
		return nil, fmt.Errorf("server %s has stopped", server)
	}
	k := newConnSet(g)
	k.port = uint16(on.StartPort)
	f.listenerConns[k] = true
	c.attach(g, k, g.current.Load().listenerConfig(c.Addr(), k.port))
	return &Opened{c}, nil
}

// listenersOf returns the connSets with the connections to the addresses that Front.Open has opened for the servers of
// a group. The caller must hold f.mu.
func (f *Front) listenersOf(g *Group) (all []*connSet) {
	for k := range f.listenerConns {
		if k.group == g {
			all = append(all, k)
		}
	}
	return all
}

// forget removes an address that Front.Open has opened. Its connections are drained; when the last one has ended, their
// connSet is removed too. The caller must hold f.mu.
func (f *Front) forget(c *claim) {
	delete(f.live, c.address.String())
	k := c.conns
	if k == nil {
		return
	}
	k.drain(k.group.current.Load().Context)
	panics.Go("front/forget", func() {
		<-k.ended
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.listenerConns, k)
	})
}
