package l4app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/accesslog"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/loops"
	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/tls/certs"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
	"github.com/k8singress/k8singress/internal/upstream/udp"
)

// chain is a provisioned caddy-l4 server without its listeners. This package opens the listeners itself, because
// caddy-l4's listeners neither track the open connections nor allow replacing the handlers. In addition, caddy-l4's UDP
// loop truncates datagrams and keeps the clients of a closed socket.
type chain struct {
	log       *zap.Logger
	addresses []string
	// udp holds the settings of a UDP port, which has no handler. It is nil for a TCP port.
	udp         *udp.Settings
	handler     layer4.Handler
	cancel      context.CancelFunc
	connections *connections
	// end is called when the connections must end, before they are closed.
	end context.CancelFunc
	// maxConnections is the maximum number of connections of the port; zero means no limit. share is the budget for
	// their file descriptors, and outgoing holds the addresses of our own sockets to endpoints.
	maxConnections int
	share          *budget.Share
	outgoing       *loops.Sockets
}

// newChain provisions a server. The handlers read the port's data from the scope, and set the port's limits in it.
func newChain(ctx caddy.Context, server json.RawMessage, of *scope) (*chain, error) {
	var s layer4.Server
	if err := caddy.StrictUnmarshalJSON(server, &s); err != nil {
		return nil, fmt.Errorf("decoding the caddy-l4 server: %w", err)
	}
	if len(s.Listen) == 0 {
		return nil, errors.New("the caddy-l4 server has no address to listen on")
	}
	var end context.CancelFunc
	of.ends, end = context.WithCancel(ctx.Context)
	ctx.Context = withScope(ctx.Context, of)
	own, cancel := caddy.NewContext(ctx)
	c := &chain{
		log: of.log, addresses: s.Listen, connections: newConnections(),
		end: end, cancel: func() { end(); cancel() },
	}
	var err error
	if slices.ContainsFunc(s.Listen, isPacketAddress) {
		c.udp, err = udpSettings(own, &s, of.log)
	} else {
		c.handler, err = provision(own, &s, of.log)
	}
	if err != nil {
		c.cancel()
		return nil, fmt.Errorf("provisioning the caddy-l4 server: %w", err)
	}
	c.maxConnections, c.share, c.outgoing = of.maxConnections, of.share, of.outgoing
	return c, nil
}

// provision returns one handler for the routes of a server. If there is nothing to match, as on our own ports, it calls
// the handlers directly, without caddy-l4's matching.
func provision(ctx caddy.Context, s *layer4.Server, log *zap.Logger) (layer4.Handler, error) {
	unhandled := layer4.HandlerFunc(func(*layer4.Connection) error { return nil })
	if len(s.Routes) == 1 && len(s.Routes[0].MatcherSetsRaw) == 0 {
		modules, err := ctx.LoadModule(s.Routes[0], "HandlersRaw")
		if err != nil {
			return nil, err
		}
		return inTurn(modules.([]any), unhandled), nil
	}
	if err := s.Routes.Provision(ctx); err != nil {
		return nil, err
	}
	matching := time.Duration(s.MatchingTimeout)
	if matching <= 0 {
		matching = layer4.MatchingTimeoutDefault
	}
	return s.Routes.Compile(log, matching, unhandled), nil
}

func inTurn(modules []any, last layer4.Handler) layer4.Handler {
	for _, module := range slices.Backward(modules) {
		handler, next := module.(layer4.NextHandler), last
		last = layer4.HandlerFunc(func(cx *layer4.Connection) error { return handler.Handle(cx, next) })
	}
	return last
}

// close ends all open connections.
func (c *chain) close() {
	c.end()
	c.connections.close()
}

// buffers holds the bytes that caddy-l4 reads while it matches a route.
var buffers = pools.NewBuffers("l4app: matching", 2<<10)

// serve handles a connection. A panic ends only this connection.
func (c *chain) serve(conn net.Conn, account *account, n *logRecord) {
	buffer := buffers.Get()
	var err error
	cx := layer4.WrapConnection(conn, buffer.Bytes()[:0], c.log)
	n.attach(cx)
	if p := panics.Try(func() { err = c.handler.Handle(cx) }); p == nil {
		buffer.Release()
	} else {
		n.setStatus(accesslog.StreamFailed)
		account.fail(internalError)
		c.log.Error("handling a connection panicked", zap.Any("panic", p.Value), zap.ByteString("stack", p.Stack))
	}
	if err != nil {
		c.log.Debug("handling a connection", zap.Stringer("client", conn.RemoteAddr()), zap.Error(err))
	}
}

// port is an open port: the listeners on the addresses of a chain. The chain can be replaced by another chain with the
// same addresses.
type port struct {
	// wanted is the definition of the port. It belongs to Ports.
	wanted    *document.Port
	addresses []string
	account   *account
	workers   *workerPool
	accessLog func() *accesslog.Streams
	chain     atomic.Pointer[chain]
	listeners []io.Closer
	// forwarders are the forwarders of a UDP port, one for each socket.
	forwarders []*udp.Forwarder
	// serving tracks the goroutines that accept or forward, and those that serve connections.
	serving panics.Group
	// gone is closed when this port is closed. back is closed when a port with the same name is opened afterwards.
	gone, back chan struct{}
	// name is the name of the port, and successor is the next port with the same name. waiting is the number of retired
	// chains whose connections have not ended, including chains of earlier ports with this name. These fields belong to
	// Ports.
	name      string
	successor *port
	waiting   int
}

func openPort(ctx caddy.Context, c *chain, of *scope) (*port, error) {
	p := &port{
		addresses: c.addresses, account: of.account, workers: of.workers, accessLog: of.tables.AccessLog,
		gone: make(chan struct{}), back: make(chan struct{}),
	}
	p.chain.Store(c)
	var sockets []any
	for _, address := range c.addresses {
		opened, err := bind(ctx, address)
		if err != nil {
			p.close()
			return nil, err
		}
		for _, socket := range opened {
			p.listeners = append(p.listeners, socket.(io.Closer))
		}
		sockets = append(sockets, opened...)
	}
	for _, socket := range sockets {
		switch socket := socket.(type) {
		case net.Listener:
			p.serving.Loop("l4app/accept", func() { p.accept(socket) })
		case net.PacketConn:
			f, err := udp.New(socket, func() *udp.Settings { return p.chain.Load().udp }, &p.account.traffic)
			if err != nil {
				p.close()
				p.free()
				return nil, err
			}
			p.forwarders = append(p.forwarders, f)
			p.serving.Go("l4app/udp", func() {
				f.Run()
				p.chain.Load().connections.remove(f)
			})
		}
	}
	return p, nil
}

// bind listens on an address through Caddy, which knows how to open privileged ports. Caddy silently shares a port with
// any process that allows it, so bind first checks that it can have the address exclusively.
func bind(ctx caddy.Context, address string) ([]any, error) {
	parsed, err := caddy.ParseNetworkAddress(address)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", address, err)
	}
	if err := netaddr.TryAlone(ctx, parsed); err != nil {
		return nil, err
	}
	sockets, err := parsed.ListenAll(ctx, net.ListenConfig{})
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", parsed, err)
	}
	return sockets, nil
}

// close closes the listeners and accepts no new clients. Open connections continue. The active clients of a UDP port
// continue, too, and are then among the connections of the chain.
func (p *port) close() {
	close(p.gone)
	for _, listener := range p.listeners {
		// The only possible error is that the listener is already closed.
		_ = listener.Close()
	}
	known := p.chain.Load().connections
	for _, f := range p.forwarders {
		if !known.add(f) || f.Drain() {
			known.remove(f)
		}
	}
}

// free releases the addresses of a closed port. It ends the remaining clients of a UDP port.
func (p *port) free() {
	for _, f := range p.forwarders {
		_ = f.Close()
	}
}

const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

func (p *port) accept(listener net.Listener) {
	pause := firstPause
	for {
		conn, err := listener.Accept()
		if err == nil {
			pause = firstPause
			p.serving.Add(1)
			p.workers.run(func() {
				defer p.serving.Done()
				p.handle(conn)
			})
			continue
		}
		// Errors such as running out of file descriptors are temporary.
		if !p.pauses(err, pause) {
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// pauses waits after an error. It returns false if the port is gone, and accepting must stop.
func (p *port) pauses(err error, pause time.Duration) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	p.chain.Load().log.Warn("accepting a connection failed; trying again", zap.Error(err))
	select {
	case <-p.gone:
		return false
	case <-time.After(pause):
		return true
	}
}

// handle serves a connection with the current chain.
func (p *port) handle(conn net.Conn) {
	defer conn.Close()
	c := p.chain.Load()
	for !c.connections.add(conn) {
		// The chain was replaced after it was loaded, or the port is gone.
		next := p.chain.Load()
		if next == c {
			return
		}
		c = next
	}
	defer c.connections.remove(conn)
	n := p.newRecord(conn)
	defer n.end()
	if !p.account.enter(c.maxConnections) {
		n.setStatus(accesslog.StreamLimited)
		p.account.warn(c.log, tooMany, "rejecting a connection: the port has reached its limit of connections",
			zap.Stringer("client", conn.RemoteAddr()), zap.Int("max_connections", c.maxConnections))
		return
	}
	defer p.account.leave()
	if !p.account.admit(c.log, conn, c.share, c.outgoing) {
		n.setStatus(accesslog.StreamLimited)
		return
	}
	defer c.share.Give(perConnection)
	c.serve(conn, p.account, n)
}

// perConnection is the number of file descriptors per connection: one for the client, one for the endpoint.
const perConnection = 2

// peerOf returns the address of the peer's socket, whatever a PROXY protocol header says.
func peerOf(conn net.Conn) netip.AddrPort {
	if socket, ok := socketOf(conn).(net.Conn); ok {
		conn = socket
	}
	return addressOf(conn.RemoteAddr())
}

// admit takes the file descriptors of a connection from share. It returns false if the caller must close the
// connection.
func (a *account) admit(log *zap.Logger, conn net.Conn, share *budget.Share, own *loops.Sockets) bool {
	if own.Has(peerOf(conn)) {
		a.warn(log, loop,
			"closing a connection that comes from this process: an endpoint of the port is a port of this controller",
			zap.Stringer("client", conn.RemoteAddr()))
		return false
	}
	if !share.Take(perConnection) {
		a.warn(log, noDescriptors,
			"rejecting a connection: the port or its namespace has used up its share of file descriptors",
			zap.Stringer("client", conn.RemoteAddr()))
		return false
	}
	return true
}

// connections is the set of open connections of a chain.
type connections struct {
	mu      sync.Mutex
	open    map[io.Closer]struct{}
	refused bool
	closed  bool
	// ended is closed when new connections are refused and no connection is left.
	ended chan struct{}
}

func newConnections() *connections {
	return &connections{open: map[io.Closer]struct{}{}, ended: make(chan struct{})}
}

// add adds a connection. It returns false if new connections are refused.
func (c *connections) add(conn io.Closer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused {
		return false
	}
	c.open[conn] = struct{}{}
	return true
}

func (c *connections) remove(conn io.Closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
	c.end()
}

// refuse makes add refuse new connections. The returned channel is closed when the last connection has ended. It is
// called once.
func (c *connections) refuse() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
	c.end()
	return c.ended
}

// close closes all open connections.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		// The goroutine that reads from the connection gets the error.
		_ = conn.Close()
	}
}

func (c *connections) end() {
	if c.refused && !c.closed && len(c.open) == 0 {
		c.closed = true
		close(c.ended)
	}
}

// Tables hold the endpoints, certificates and certificate authorities that the handlers of ports use.
type Tables struct {
	Endpoints    *endpoints.Table
	Certificates *certs.Store
	Trust        *trust.Store
	// Budget limits the file descriptors of all ports and of passthrough; nil means budget.Streams.
	Budget *budget.Budget
	// AccessLog returns the current access log of connections. A nil function or a nil result disables the log.
	AccessLog func() *accesslog.Streams
}

// scope carries data between a port and its handlers: the handlers read the port's data, and set maxConnections and
// their limits during provisioning.
type scope struct {
	tables  *Tables
	account *account
	log     *zap.Logger
	workers *workerPool
	// share is the budget for file descriptors. outgoing holds the addresses of the sockets to endpoints, either for
	// TCP or for UDP.
	share    *budget.Share
	outgoing *loops.Sockets
	// maxConnections is the maximum number of open connections; zero means no limit. A handler sets it while it is
	// provisioned.
	maxConnections int
	// ends is cancelled when open connections must end.
	ends context.Context //nolint:containedctx // the handlers of a port are provisioned with it
	// drain returns how long a connection may last after its port or endpoint is gone.
	drain func() time.Duration
}

type scopeKey struct{}

func withScope(ctx context.Context, s *scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// scopeOf returns the scope of a handler, or nil if the port was not opened by this package.
func scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}
