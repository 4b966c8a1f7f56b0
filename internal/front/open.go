package front

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/netaddr"
	"github.com/k8singress/k8singress/internal/panics"
)

// Opened is an address that is open beside those of a server, and goes with it.
type Opened struct{ claim *claim }

// IsOpen says whether neither Close was called nor the server has gone.
func (o *Opened) IsOpen() bool {
	o.claim.front.mu.Lock()
	defer o.claim.front.mu.Unlock()
	return !o.claim.closed
}

// Ended says whether the address is closed, and the last connection that came by it has ended.
func (o *Opened) Ended() bool {
	o.claim.front.mu.Lock()
	defer o.claim.front.mu.Unlock()
	select {
	case <-o.claim.cohort.ended:
		return true
	default:
		return false
	}
}

// Close closes the address. Requests under way are answered, and their clients and those of idle connections asked to leave. It may be
// called more than once, and does not wait.
func (o *Opened) Close() {
	// It never fails.
	_ = o.claim.Close()
}

// ErrNotStarted is for a server that does not run yet: its configuration is being loaded.
var ErrNotStarted = errors.New("the server has not started yet")

// Addresses returns the addresses for a port beside those of a server: at the hosts that it listens on by TCP. It is an error if no
// server with this name runs: ErrNotStarted if one is about to.
func (f *Front) Addresses(server string, port uint16) ([]caddy.NetworkAddress, error) {
	f.mu.Lock()
	serving, starts := f.serving(server), f.starts(server)
	f.mu.Unlock()
	switch {
	case serving == nil && starts:
		return nil, ErrNotStarted
	case serving == nil:
		return nil, fmt.Errorf("no server %s runs", server)
	}
	var all []caddy.NetworkAddress
	for _, text := range serving.Server.Listen {
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

// Runs reports whether a server with this name runs.
func (f *Front) Runs(server string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.serving(server) != nil
}

// Expects reports whether a server with this name runs or is about to: Caddy is loading its configuration.
func (f *Front) Expects(server string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.serving(server) != nil || f.starts(server)
}

// serving returns the server of a name that runs, or nil. It is called with the lock.
func (f *Front) serving(name string) *Serving {
	if g := f.groups[name]; g != nil && len(g.servings) > 0 {
		return g.current.Load()
	}
	return nil
}

// starts says whether a server of a name has been prepared and does not run yet. It is called with the lock.
func (f *Front) starts(name string) bool {
	for server, s := range f.servings {
		if server.Name() == name && s.group == nil {
			return true
		}
	}
	return false
}

// Open listens on one more TCP address, which has one port, beside those of a server. Its requests are answered by AnswerBeside of the
// server of the moment, with the limits of that server, and with TLS if it has TLS: PortOf tells the handshake the port. It is an error
// with netaddr.ErrHeld if anybody listens there.
func (f *Front) Open(ctx context.Context, address caddy.NetworkAddress, server string) (*Opened, error) {
	on, ok := netaddr.OnFront(address)
	if !ok || on.PortRangeSize() != 1 {
		return nil, fmt.Errorf("address %s is not one TCP port", address)
	}
	f.mu.Lock()
	serving := f.serving(server)
	if serving == nil || f.live[on.String()] != nil {
		f.mu.Unlock()
		return nil, fmt.Errorf("no server %s runs, or address %s is open", server, address)
	}
	c := &claim{front: f, live: true, written: on, address: on, done: make(chan struct{}), uncount: func() {}}
	f.live[on.String()] = c
	f.mu.Unlock()
	if err := f.claim(ctx, c, net.ListenConfig{KeepAliveConfig: keepAlive(serving.Server)}); err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.live, on.String())
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.groups[server]
	if len(g.servings) == 0 {
		c.release()
		return nil, fmt.Errorf("no server %s runs any more", server)
	}
	k := newCohort(g)
	k.port = uint16(on.StartPort)
	f.beside[k] = true
	c.attach(g, k, g.current.Load().besideAt(c.Addr(), k.port))
	return &Opened{c}, nil
}

// besideOf returns what serves the connections of addresses beside those of a group. It is called with the lock.
func (f *Front) besideOf(g *Group) (all []*cohort) {
	for k := range f.beside {
		if k.group == g {
			all = append(all, k)
		}
	}
	return all
}

// forget ends an address that Open has opened, and forgets its connections when the last has ended. It is called with the lock.
func (f *Front) forget(c *claim) {
	delete(f.live, c.address.String())
	k := c.cohort
	if k == nil {
		return
	}
	k.drain(k.group.current.Load().Context)
	panics.Go("front/forget", func() {
		<-k.ended
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.beside, k)
	})
}

type portKey struct{}

// PortOf returns the port of an address that Open has opened, for the context of a TLS handshake that comes by it. It is 0 for all others.
func PortOf(ctx context.Context) uint16 {
	port, _ := ctx.Value(portKey{}).(uint16)
	return port
}
