package k8singress

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/process/netaddr"
)

func init() { caddy.RegisterModule(new(ProbeListener)) }

// probes limits the connections to the health port. All configurations share it.
var probes = connlimit.New(budget.Probes.Budget)

// ProbeListener limits the connections to the health port to 1/64 of the limit on open files. Each client address may
// have a share of them. A new connection replaces one that waits for its client, so probes succeed even if many clients
// connect and stay silent.
type ProbeListener struct{}

// CaddyModule returns the Caddy module information.
func (*ProbeListener) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID: "caddy.listeners.k8singress_probes", New: func() caddy.Module { return new(ProbeListener) },
	}
}

// Provision moves the TCP addresses of the server to the network that listenForProbes opens. As with the front's
// addresses, the JSON keeps the addresses that users write.
func (*ProbeListener) Provision(ctx caddy.Context) error {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return errors.New("the listener wrapper k8singress_probes is for servers of the http app")
	}
	for i, text := range server.Listen {
		if address, err := caddy.ParseNetworkAddress(text); err == nil {
			if on, ok := netaddr.OnProbes(address); ok {
				server.Listen[i] = on.String()
			}
		}
	}
	return nil
}

// WrapListener limits the connections of a listener.
func (*ProbeListener) WrapListener(next net.Listener) net.Listener { return probeListener{next} }

type probeListener struct{ net.Listener }

// Accept returns the next connection that fits into the limit. It closes the others.
func (l probeListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &probeConn{Conn: conn}
		c.touch()
		address := connlimit.AddressOf(connlimit.IPOf(conn.RemoteAddr()))
		if c.place = probes.Enter(connlimit.Client{Address: address}, c); c.place != nil {
			return c, nil
		}
		_ = conn.Close()
	}
}

// probeConn is a connection to the health port.
type probeConn struct {
	net.Conn
	place *connlimit.Place
	// last is the time of the last read or write, in nanoseconds since 1970. inRequest means that data has arrived
	// since the last response.
	last      atomic.Int64
	inRequest atomic.Bool
	gone      sync.Once
}

func (c *probeConn) touch() { c.last.Store(time.Now().UnixNano()) }

func (c *probeConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.inRequest.Store(true)
		c.touch()
	}
	return n, err
}

func (c *probeConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.inRequest.Store(false)
	c.touch()
	return n, err
}

// Close is called at least once, by the server that accepted the connection.
func (c *probeConn) Close() error {
	c.gone.Do(c.place.Leave)
	return c.Conn.Close()
}

// probeTime is the maximum duration of a probe. A connection that takes longer may be closed if another client needs
// its place.
const probeTime = time.Second

// State implements connlimit.Occupant.
func (c *probeConn) State() (connlimit.State, time.Duration) {
	silent := time.Since(time.Unix(0, c.last.Load()))
	if c.inRequest.Load() && silent < probeTime {
		return connlimit.Busy, silent
	}
	return connlimit.Idle, silent
}

// End implements connlimit.Occupant. The server notices that the connection is closed and calls Close.
func (c *probeConn) End() {
	if state, _ := c.State(); state == connlimit.Idle {
		_ = c.Conn.Close()
	}
}

var (
	_ caddy.Provisioner     = (*ProbeListener)(nil)
	_ caddy.ListenerWrapper = (*ProbeListener)(nil)
)
