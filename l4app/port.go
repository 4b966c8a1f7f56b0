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
	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/tls/certs"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
	"github.com/k8singress/k8singress/internal/upstream/udp"
)

// chain is a provisioned caddy-l4 server without its listeners: the handlers for the connections of a port. This
// package opens the listeners itself, because caddy-l4 does not track open connections and cannot replace the handlers
// of a listener. For UDP, caddy-l4 also truncates datagrams, and keeps the sessions of clients after the socket was
// closed.
type chain struct {
	log       *zap.Logger
	addresses []string
	// udp holds the settings of a UDP port. It is nil for a TCP port, for which handler is set instead.
	udp         *udp.Settings
	handler     layer4.Handler
	cancel      context.CancelFunc
	connections *connections
	// end cancels the context of the open connections. It is called before the connections are closed.
	end context.CancelFunc
	// maxConnections is the maximum number of open connections of the port; zero means no limit. share counts and
	// limits the file descriptors of the connections. outgoing holds the local addresses of this process's connections
	// to endpoints, to detect loops.
	maxConnections int
	share          *budget.Share
	outgoing       *loops.Sockets
	// chained is true if the handlers include a StreamChain, which depends on the Caddy configuration.
	chained bool
}

// newChain provisions a caddy-l4 server. The scope gives the handlers access to the data of the port, such as its
// metrics. The handlers store the maximum number of connections in the scope.
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
	c.maxConnections, c.share, c.outgoing, c.chained = of.maxConnections, of.share, of.outgoing, of.chained
	return c, nil
}

// provision returns one handler that runs all routes of a caddy-l4 server. If there is only one route, and it has no
// matchers, the returned handler calls the handlers of this route directly. This is the case for all ports that Render
// returns.
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
	return s.Routes.Compile(oncePerQuiet(log), matching, unhandled), nil
}

func inTurn(modules []any, last layer4.Handler) layer4.Handler {
	for _, module := range slices.Backward(modules) {
		handler, next := module.(layer4.NextHandler), last
		last = layer4.HandlerFunc(func(cx *layer4.Connection) error { return handler.Handle(cx, next) })
	}
	return last
}

// close closes all open connections that the chain handles.
func (c *chain) close() {
	c.end()
	c.connections.close()
}

// buffers is the pool of buffers for the bytes that caddy-l4 reads while it looks for a matching route.
var buffers = pools.NewBuffers("l4app: matching", 2<<10)

// serve calls the handlers for a connection. It recovers from panics, so that a panic ends only this connection.
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

// port is an open port, with listeners on the addresses of its chain. The chain contains the handlers, and can be
// replaced by another chain with the same addresses.
type port struct {
	// wanted is the definition of the port in the configuration. It may only be used by the methods of Ports.
	wanted    *document.Port
	addresses []string
	account   *account
	workers   *workerPool
	accessLog func() *accesslog.Streams
	chain     atomic.Pointer[chain]
	listeners []io.Closer
	// forwarders holds one forwarder for each socket of a UDP port.
	forwarders []*udp.Forwarder
	// serving tracks the goroutines that accept connections, forward datagrams, or serve connections.
	serving panics.Group
	// gone is closed when this port is closed. back is closed when, after that, a new port with the same name is
	// opened.
	gone, back chan struct{}
	// name is the name of the port. successor is the port that was opened with the same name after this port had been
	// closed. waiting is the number of replaced chains, of this port and of earlier ports with this name, that still
	// have open connections. These fields may only be used by the methods of Ports.
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

// bind listens on an address. It uses Caddy's listeners, which support privileged ports. Two processes can share an
// address without an error if both of them allow it, so bind first checks that no other process uses the address.
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

// close closes the listeners, so that new clients are rejected. Open connections and UDP sessions continue. Each
// forwarder of a UDP port counts as a connection of the chain until its last session has ended.
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

// free makes the addresses of a closed port available to other listeners again. For a UDP port, this ends the remaining
// sessions.
func (p *port) free() {
	for _, f := range p.forwarders {
		_ = f.Close()
	}
}

func (p *port) accept(listener net.Listener) {
	netconn.Accept(listener, func(conn net.Conn) {
		p.serving.Add(1)
		p.workers.run(func() {
			defer p.serving.Done()
			p.handle(conn)
		})
	}, func(err error) {
		p.chain.Load().log.Warn("accepting a connection failed; trying again", zap.Error(err))
	})
}

// handle serves a connection with the current handlers of the port.
func (p *port) handle(conn net.Conn) {
	defer conn.Close()
	c := p.chain.Load()
	for !c.connections.add(conn) {
		// The chain rejects new connections if it was replaced or the port was closed. If it was replaced, use the new
		// chain.
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

// perConnection is the number of file descriptors per connection: one for the client's socket and one for the
// endpoint's.
const perConnection = 2

// peerOf returns the address of the peer that has opened the connection. It ignores the address in a PROXY protocol
// header.
func peerOf(conn net.Conn) netip.AddrPort {
	return netconn.AddrPort(socketOf(conn).RemoteAddr())
}

// admit takes the file descriptors for a new connection from share. It returns false if too few are left, or if this
// process itself has opened the connection, which would be a loop. The caller must then close the connection.
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

// connections tracks the open connections that the handlers of a chain serve.
type connections struct {
	mu      sync.Mutex
	open    map[io.Closer]struct{}
	refused bool
	closed  bool
	// ended is closed when the last connection has ended after refuse was called.
	ended chan struct{}
}

func newConnections() *connections {
	return &connections{open: map[io.Closer]struct{}{}, ended: make(chan struct{})}
}

// The method add adds a connection. It returns false, and adds nothing, if refuse was called before.
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

// refuse makes the method add reject all further connections. It returns a channel that is closed when the last open
// connection has ended. It must be called only once.
func (c *connections) refuse() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
	c.end()
	return c.ended
}

// close closes all connections in c.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		// Ignore the error: the connection may already be closed.
		_ = conn.Close()
	}
}

func (c *connections) end() {
	if c.refused && !c.closed && len(c.open) == 0 {
		c.closed = true
		close(c.ended)
	}
}

// Tables provides what the handlers of ports look up: endpoints, certificates and certificate authorities.
type Tables struct {
	Endpoints    *endpoints.Table
	Certificates *certs.Store
	Trust        *trust.Store
	// Budget limits the number of file descriptors that all ports and all TLS passthrough connections may use together.
	// If it is nil, budget.Streams is used.
	Budget *budget.Budget
	// AccessLog returns the current access log for connections. If the function or its result is nil, connections are
	// not logged.
	AccessLog func() *accesslog.Streams
}

// scope passes data between a port and its handlers while the handlers are provisioned. The handlers get the data of
// the port from the scope, and store the maximum number of connections in the scope.
type scope struct {
	tables  *Tables
	account *account
	log     *zap.Logger
	workers *workerPool
	// share counts and limits the file descriptors of the port. outgoing holds the local addresses of this process's
	// connections to endpoints, for the protocol of the port. It is used to detect loops.
	share    *budget.Share
	outgoing *loops.Sockets
	// maxConnections is the maximum number of open connections of the port; zero means no limit. A handler sets it in
	// its Provision method.
	maxConnections int
	// chains are the definitions of the stream chains, by name. A StreamChain sets chained in its Provision method.
	chains  map[string]json.RawMessage
	chained bool
	// ends is a context that is cancelled to end the open connections.
	ends context.Context //nolint:containedctx // the handlers of a port are provisioned with it
	// drain returns how long a connection may continue after its port was closed or its endpoint was removed.
	drain func() time.Duration
}

type scopeKey struct{}

func withScope(ctx context.Context, s *scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// scopeOf returns the scope of the port for which a handler is being provisioned, from the context. It returns nil if
// the handler is not provisioned by this package.
func scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}
