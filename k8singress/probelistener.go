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
	"github.com/k8singress/k8singress/internal/process/netconn"
)

func init() { caddy.RegisterModule(new(ProbeListener)) }

// probes limits the number of connections to the health port. It is shared by all configurations.
var probes = connlimit.New(budget.Probes.Budget)

// ProbeListener is a Caddy listener wrapper that limits the number of connections to the health port to 1/64 of the
// limit on open files. Each client address can use only a share of these connections. If the limit is reached, a new
// connection replaces an idle one, so probes succeed even if many clients connect without sending a request.
type ProbeListener struct{}

// CaddyModule returns the Caddy module information.
func (*ProbeListener) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID: "caddy.listeners.k8singress_probes", New: func() caddy.Module { return new(ProbeListener) },
	}
}

// Provision replaces the network in the TCP addresses of the server with the network netaddr.Probes, so that Caddy
// calls listenForProbes to open the sockets. The addresses in the JSON configuration do not change.
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

// WrapListener returns a listener that limits the connections accepted by next.
func (*ProbeListener) WrapListener(next net.Listener) net.Listener { return probeListener{next} }

type probeListener struct{ net.Listener }

// Accept returns the next connection. It closes connections that exceed the limit, and waits for the next one.
func (l probeListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &probeConn{Conn: conn}
		c.touch()
		address := connlimit.AddressOf(netconn.AddrPort(conn.RemoteAddr()).Addr())
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
	// last is the time of the last read or write, in nanoseconds since 1970. inRequest is true if data was received
	// after the last response.
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

// Close closes the connection and stops counting it. It may be called more than once.
func (c *probeConn) Close() error {
	c.gone.Do(c.place.Leave)
	return c.Conn.Close()
}

// probeTime is the maximum duration of a probe. After that, the connection may be closed to make room for another
// client.
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
