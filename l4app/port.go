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

	"github.com/k8singress/k8singress/internal/accesslog"
	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/loops"
	"github.com/k8singress/k8singress/internal/netaddr"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/pools"
	"github.com/k8singress/k8singress/internal/trust"
	"github.com/k8singress/k8singress/internal/udp"
)

// chain is a provisioned caddy-l4 server without its listeners. Those are ours, because caddy-l4's own know neither which
// connections are open nor how to get other handlers, and its loop for UDP cuts datagrams and keeps the clients of a
// socket that is closed.
type chain struct {
	log       *zap.Logger
	addresses []string
	// udp is set for a UDP port, which has no handler.
	udp         *udp.Settings
	handler     layer4.Handler
	cancel      context.CancelFunc
	connections *connections
	// end is called when the connections have to end, before they are closed.
	end context.CancelFunc
	// most is how many connections the port may have; zero is any number. share is where their file descriptors come from, and outgoing
	// has the sockets of our own.
	most     int
	share    *budget.Share
	outgoing *loops.Sockets
}

// newChain provisions a server. What its handlers are to know of the port is in of, and what they want of it comes to stand
// there.
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
	c.most, c.share, c.outgoing = of.most, of.share, of.outgoing
	return c, nil
}

// provision makes one handler of the routes of a server. Where nothing has to be matched, as on our own ports, it goes
// straight to what they handle connections with.
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

// close ends the connections that are there.
func (c *chain) close() {
	c.end()
	c.connections.close()
}

// buffers hold what caddy-l4 reads while it looks for a route.
var buffers = pools.NewBuffers("l4app: matching", 2<<10)

// serve handles a connection. A panic ends this connection alone.
func (c *chain) serve(conn net.Conn, account *account, n *noted) {
	buffer := buffers.Get()
	var err error
	cx := layer4.WrapConnection(conn, buffer.Bytes()[:0], c.log)
	n.goesWith(cx)
	if p := panics.Try(func() { err = c.handler.Handle(cx) }); p == nil {
		buffer.Release()
	} else {
		n.is(accesslog.StreamFailed)
		account.fail(broken)
		c.log.Error("handling a connection panicked", zap.Any("panic", p.Value), zap.ByteString("stack", p.Stack))
	}
	if err != nil {
		c.log.Debug("handling a connection", zap.Stringer("client", conn.RemoteAddr()), zap.Error(err))
	}
}

// port is what listens on the addresses of a chain. The chain can be replaced by another one with the same addresses.
type port struct {
	// wanted is what the port was made from. It belongs to Ports.
	wanted    *document.Port
	addresses []string
	account   *account
	workers   *workerPool
	accessLog func() *accesslog.Streams
	chain     atomic.Pointer[chain]
	listeners []io.Closer
	// forwarders are those of a UDP port.
	forwarders []*udp.Forwarder
	// serving are the loops that accept or forward, and the connections under way.
	serving panics.Group
	// gone is closed when the port is, and back when there is a port of that name again.
	gone, back chan struct{}
	// name is that of the port, successor the next one of that name, and waiting how many chains wait for their connections to end,
	// those of ports before it included. They belong to Ports.
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

// bind listens on an address, through Caddy, which knows how to get at privileged ports. Caddy shares ports with whoever
// else allows it, without a word; so the address is tried for ourselves alone before.
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

// close ends the listeners, and takes no clients any more. The connections go on, and so do the clients of a UDP port with
// whom something moves: they are among the connections of the chain then.
func (p *port) close() {
	close(p.gone)
	for _, listener := range p.listeners {
		// What can go wrong is that it is closed already.
		_ = listener.Close()
	}
	known := p.chain.Load().connections
	for _, f := range p.forwarders {
		if !known.add(f) || f.Drain() {
			known.remove(f)
		}
	}
}

// free gives the addresses of a port free that is closed. Clients of a UDP port that go on do so no longer.
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
		// Out of file descriptors, for example: that passes.
		if !p.pauses(err, pause) {
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// pauses waits after an error. It returns false when there is nothing to wait for, because the port is gone.
func (p *port) pauses(err error, pause time.Duration) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	p.chain.Load().log.Warn("accepting a connection; going on", zap.Error(err))
	select {
	case <-p.gone:
		return false
	case <-time.After(pause):
		return true
	}
}

// handle serves a connection by the chain of this moment.
func (p *port) handle(conn net.Conn) {
	defer conn.Close()
	c := p.chain.Load()
	for !c.connections.add(conn) {
		// It was replaced between those two lines, or the port is gone.
		next := p.chain.Load()
		if next == c {
			return
		}
		c = next
	}
	defer c.connections.remove(conn)
	n := p.note(conn)
	defer n.end()
	if !p.account.enter(c.most) {
		n.is(accesslog.StreamLimited)
		p.account.warn(c.log, tooMany, "refusing a connection: the port has as many as it may have",
			zap.Stringer("client", conn.RemoteAddr()), zap.Int("max_connections", c.most))
		return
	}
	defer p.account.leave()
	if !p.account.admit(c.log, conn, c.share, c.outgoing) {
		n.is(accesslog.StreamLimited)
		return
	}
	defer c.share.Give(perConnection)
	c.serve(conn, p.account, n)
}

// perConnection is how many file descriptors a connection costs: one for the client, one for the endpoint.
const perConnection = 2

// peerOf is who is at the other end, whatever a PROXY protocol header says.
func peerOf(conn net.Conn) netip.AddrPort {
	if socket, ok := socketOf(conn).(net.Conn); ok {
		conn = socket
	}
	return addressOf(conn.RemoteAddr())
}

// admit takes the file descriptors of a connection. It returns false for one that is to be closed.
func (a *account) admit(log *zap.Logger, conn net.Conn, share *budget.Share, own *loops.Sockets) bool {
	if own.Has(peerOf(conn)) {
		a.warn(log, looped, "closing a connection that comes from this process: the endpoint of a port is a port of ours",
			zap.Stringer("client", conn.RemoteAddr()))
		return false
	}
	if !share.Take(perConnection) {
		a.warn(log, crowded, "refusing a connection: the port, or its namespace, has its share of all file descriptors",
			zap.Stringer("client", conn.RemoteAddr()))
		return false
	}
	return true
}

// connections are those that a chain serves.
type connections struct {
	mu      sync.Mutex
	open    map[io.Closer]struct{}
	refused bool
	closed  bool
	// ended is closed when no connection is there and none may come.
	ended chan struct{}
}

func newConnections() *connections {
	return &connections{open: map[io.Closer]struct{}{}, ended: make(chan struct{})}
}

// add returns false when no new connection is taken.
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

// refuse takes no new connection any more. The channel is closed when the last one has ended. It is called once.
func (c *connections) refuse() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
	c.end()
	return c.ended
}

// close closes those that are there.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		// Whoever reads from it finds out; there is nobody else to tell.
		_ = conn.Close()
	}
}

func (c *connections) end() {
	if c.refused && !c.closed && len(c.open) == 0 {
		c.closed = true
		close(c.ended)
	}
}

// Tables are what the handlers of ports look endpoints, certificates and authorities up in.
type Tables struct {
	Endpoints    *endpoints.Table
	Certificates *certs.Store
	Trust        *trust.Store
	// Budget has the file descriptors of all ports and of passthrough; nil means budget.Streams.
	Budget *budget.Budget
	// AccessLog returns where connections are noted now: nil is nowhere, and nil in its place, too.
	AccessLog func() *accesslog.Streams
}

// scope is what the handlers of a port know of it, and what they tell it.
type scope struct {
	tables  *Tables
	account *account
	log     *zap.Logger
	workers *workerPool
	// share is where file descriptors come from, and outgoing has the sockets towards endpoints, of TCP or of UDP.
	share    *budget.Share
	outgoing *loops.Sockets
	// most is how many connections there may be at once. It is said by a handler while it is provisioned.
	most int
	// ends is over when open connections have to end.
	ends context.Context //nolint:containedctx // it is the one of the port, for those who are provisioned with it
	// drain returns for how long a connection may go on that nobody wants any more.
	drain func() time.Duration
}

type scopeKey struct{}

func withScope(ctx context.Context, s *scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// scopeOf returns nil for a handler on a port that is none of ours.
func scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}
