package front

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/http3/qlog"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/process/logs"
	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// quicSocket serves HTTP/3 at one address, as long as at least one configuration uses the address. All these
// configurations share one QUIC listener of Caddy, which reads from a quicClaim instead of the socket. When no
// configuration uses the address any longer, Caddy closes this listener, and with it the quicClaim.
type quicSocket struct {
	group   *Group
	connSet *connSet
	conn    net.PacketConn
	// transport sends and receives the QUIC packets. It uses the innermost connection that conn wraps, because quic-go
	// needs a *net.UDPConn to use all features of the kernel.
	transport *quic.Transport
	listener  *quic.EarlyListener
	// over is canceled when all connections must end. The channel closed is closed once the socket is closed.
	over   context.Context //nolint:containedctx // Its cancellation ends all connections of the socket.
	cutOff context.CancelFunc
	closed chan struct{}
	// goroutines is used to wait for all goroutines of the socket: the accept loop, and one goroutine per connection.
	goroutines panics.Group

	mu sync.Mutex
	// conns holds the connections whose HTTP/3 server has started. ending becomes true when no configuration uses the
	// socket any more; then GOAWAY is sent on every connection in conns.
	conns  map[*quicConn]bool
	ending bool
}

// listenQUIC is a caddy.ListenerFunc for the HTTP/3 network. Caddy calls it only if no running configuration uses the
// address yet.
//
//nolint:revive // Caddy defines the parameters.
func (f *Front) listenQUIC(ctx context.Context, network, host, ports string, offset uint,
	config net.ListenConfig) (any, error) {
	suffix := network[len(netaddr.FrontQUIC):]
	address, err := caddy.ParseNetworkAddress(caddy.JoinNetworkAddress(netaddr.Front+suffix, host, ports))
	if err != nil {
		return nil, err
	}
	of, err := f.owner(ctx, address)
	if err != nil {
		return nil, err
	}
	address.Network = "udp" + suffix
	if !of.SharePorts {
		if err := netaddr.TryOthers(ctx, address.At(offset)); err != nil {
			return nil, err
		}
	}
	opened, err := address.Listen(ctx, offset, config)
	if err != nil || len(of.Server.PacketConnWrappersRaw) > 0 {
		// Caddy itself serves HTTP/3 for servers with packet conn wrappers, so return the socket to Caddy.
		return opened, err
	}
	q := &quicSocket{conn: opened.(net.PacketConn), conns: map[*quicConn]bool{}, closed: make(chan struct{})}
	q.over, q.cutOff = context.WithCancel(
		context.Background()) //nolint:forbidigo // The socket outlives configurations.
	f.mu.Lock()
	of.join()
	q.group, q.connSet = of.group, of.conns
	q.connSet.conns.Add(1)
	f.mu.Unlock()
	if err := q.listen(of); err != nil {
		q.connSet.conns.Add(-1)
		return nil, errors.Join(err, q.conn.Close())
	}
	f.mu.Lock()
	q.connSet.quicSockets = append(q.connSet.quicSockets, q)
	f.mu.Unlock()
	q.goroutines.Loop("front/quic accept", q.accept)
	return &quicClaim{socket: q, done: make(chan struct{})}, nil
}

// handshakesPerSecond is the rate of new connections above which clients must validate their address, as in Caddy.
const handshakesPerSecond = 1000

// The flow control windows of HTTP/3, in bytes. A window limits how much data a client may send before the server has
// read it. The initial windows, streamWindow and connectionWindow, are small, because a client can fill them without
// sending a request: some streams, such as the two QPACK streams, are not read. While a request body is read as fast as
// it arrives, a window grows up to maxWindow, the size in Go's HTTP/2 server.
const (
	streamWindow     = 64 << 10
	connectionWindow = 96 << 10
	maxWindow        = 1 << 20
)

// listen opens the QUIC listener in the same way as Caddy's ListenQUIC.
func (q *quicSocket) listen(of *Binding) (err error) {
	inner := q.conn
	for {
		outer, ok := inner.(interface{ Unwrap() net.PacketConn })
		if !ok {
			break
		}
		inner = outer.Unwrap()
	}
	limiter := rate.NewLimiter(handshakesPerSecond, handshakesPerSecond)
	q.transport = &quic.Transport{Conn: inner, VerifySourceAddress: func(net.Addr) bool { return !limiter.Allow() }}
	config := q.group.tlsConfig()
	config.MinVersion = tls.VersionTLS13
	base := quicConfig(of)
	config3 := base.Clone()
	config3.GetConfigForClient = func(*quic.ClientInfo) (*quic.Config, error) { return q.fewer(base), nil }
	q.listener, err = q.transport.ListenEarly(http3.ConfigureTLSConfig(config), config3)
	return err
}

// quicConfig returns the QUIC configuration for the connections of a server.
func quicConfig(of *Binding) *quic.Config {
	return &quic.Config{
		InitialPacketSize: 1200, Tracer: qlog.DefaultConnectionTracer,
		// Unlike in Caddy, 0-RTT is off unless the server enables it, since anyone who has recorded early data can
		// replay it from any address.
		Allow0RTT: of.Server.Allow0RTT != nil && *of.Server.Allow0RTT,
		// quic-go limits a handshake to twice HandshakeIdleTimeout, so set half of the configured limit. quic-go also
		// aborts a handshake if no packet arrives for HandshakeIdleTimeout. Zero means quic-go's default.
		HandshakeIdleTimeout:       of.HandshakeTimeout / 2,
		InitialStreamReceiveWindow: streamWindow, MaxStreamReceiveWindow: maxWindow,
		InitialConnectionReceiveWindow: connectionWindow, MaxConnectionReceiveWindow: maxWindow,
		MaxIncomingStreams: quicStreams,
	}
}

// quicStreams is the maximum number of concurrent HTTP/3 requests on a connection. It is quic-go's default.
const quicStreams = 100

// fewer(base) returns the QUIC configuration for a new connection. This is base itself, or a copy of base that allows
// fewer concurrent requests because much of the memory budget for requests is in use.
func (q *quicSocket) fewer(base *quic.Config) *quic.Config {
	streams := int64(q.group.front.requests.streams(int(base.MaxIncomingStreams)))
	if streams == base.MaxIncomingStreams {
		return base
	}
	config := base.Clone()
	config.MaxIncomingStreams = streams
	return config
}

// tooMany is the error message for clients whose connection is rejected, or closed to make room for another one.
const tooMany = "there are too many connections"

// accept accepts connections and serves each one in its own goroutine, until the listener is closed.
func (q *quicSocket) accept() {
	for {
		conn, err := q.listener.Accept(
			context.Background()) //nolint:forbidigo // Accept returns once the listener is closed.
		if err != nil {
			return
		}
		c := &quicConn{socket: q, conn: conn}
		c.touch()
		place := q.group.front.clients.Enter(q.group.Binding().client(conn.RemoteAddr()), c)
		if place == nil {
			_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeExcessiveLoad), tooMany)
			continue
		}
		c.begin(q.group.front, place)
		q.goroutines.Go("front/quic", func() { q.serve(c) }, func() {
			_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeInternalError), "")
		})
	}
}

// serve handles the requests of a connection until it ends. The limits of the connection do not change after its start.
func (q *quicSocket) serve(c *quicConn) {
	defer c.place.Leave()
	defer c.leave()
	binding := q.group.Binding()
	current := binding.limits.under(binding)
	c.server = http3.Server{
		Handler: c, IdleTimeout: current.Idle, MaxHeaderBytes: current.HeadBytes,
		ConnContext: func(ctx context.Context, _ *quic.Conn) context.Context {
			q.begin(c)
			return ctx
		},
	}
	defer q.forget(c)
	defer c.watch(current)()
	// The error of ServeQUICConn only says how the connection ended, so ignore it.
	_ = c.server.ServeQUICConn(c.conn)
}

func (q *quicSocket) forget(c *quicConn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.conns, c)
}

// begin adds a connection to q.conns. If the socket is no longer used by any configuration, begin also sends GOAWAY,
// because q.end has already sent it on the other connections.
func (q *quicSocket) begin(c *quicConn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.conns[c] = true
	if q.ending {
		c.goAway()
	}
}

// quicConn is one HTTP/3 connection. It has its own http3.Server, so that GOAWAY can be sent on this connection only:
// an http3.Server always sends GOAWAY on all of its connections.
type quicConn struct {
	traffic
	socket *quicSocket
	conn   *quic.Conn
	server http3.Server
	away   sync.Once
	// active is the number of requests in progress.
	active atomic.Int64

	mu sync.Mutex
	// idle is the timer that calls endIdle.
	idle *time.Timer
}

// watch closes the connection when no request has been in progress for l.Idle plus l.Head. During this time,
// a client can start the next request and send its complete header. Without watch, a client could keep a connection
// open by sending incomplete headers, because http3 does not treat such a connection as idle. The caller must call the
// returned function stop when the connection has ended.
func (c *quicConn) watch(l *limits.Limits) (stop func()) {
	if l.Idle <= 0 || l.Head <= 0 {
		return func() {}
	}
	limit := l.Idle + l.Head
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = panics.AfterFunc("front/quic idle", limit, func() { c.endIdle(limit) })
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.idle.Stop()
	}
}

// endIdle closes the connection if the time without a request in progress has reached limit. Otherwise it restarts the
// timer.
func (c *quicConn) endIdle(limit time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn.Context().Err() != nil {
		return
	}
	left := limit
	if c.active.Load() == 0 {
		left -= c.silent()
	}
	if left > 0 {
		c.idle.Reset(left)
		return
	}
	_ = c.conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "idle timeout")
}

// goAway sends GOAWAY, so that the client opens another connection for its next request. This connection ends after its
// last request, or when quicSocket.cut is called.
func (c *quicConn) goAway() {
	// Ignore the error: Shutdown only fails if its context is canceled, because all connections must end.
	c.away.Do(func() { panics.Go("front/quic leave", func() { _ = c.server.Shutdown(c.socket.over) }) })
}

// lingering is how long a connection must have been idle before the connection limiter may close it, since a part of
// the last response may still be in transit.
const lingering = time.Second

// State implements connlimit.Occupant.
func (c *quicConn) State() (connlimit.State, time.Duration) {
	answered := c.requests.Load() > 0
	return c.state(c.active.Load() == 0 && (!answered || c.silent() >= lingering))
}

// End implements connlimit.Occupant.
func (c *quicConn) End() {
	switch state, _ := c.State(); state {
	case connlimit.Idle:
		_ = c.conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
	case connlimit.Stalled:
		_ = c.conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeExcessiveLoad), tooMany)
	default:
		c.goAway()
	}
}

// ServeHTTP handles a request that http3 has read, with the server of the configuration that Caddy currently runs.
func (c *quicConn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.active.Add(1)
	defer c.active.Add(-1)
	group := c.socket.group
	binding := group.Binding()
	current := binding.limits.under(binding)
	if last := current.Last(int(c.requests.Add(1))); last || caddy.Exiting() {
		c.goAway()
	}
	c.answer(w, r, binding, current, 0)
}

// end stops accepting connections and sends GOAWAY to all clients. It closes the socket when the last connection has
// ended.
func (q *quicSocket) end() {
	defer q.connSet.conns.Add(-1)
	// Closing the listener does not close connections that are already open.
	_ = q.listener.Close()
	q.mu.Lock()
	q.ending = true
	for c := range q.conns {
		c.goAway()
	}
	q.mu.Unlock()
	q.goroutines.Wait()
	q.cutOff()
	_ = q.transport.Close()
	if err := q.conn.Close(); err != nil {
		logs.Logger("k8singress").Warn("closing an HTTP/3 socket failed", zap.Stringer("address", q.conn.LocalAddr()),
			zap.Error(err))
	}
	close(q.closed)
	q.group.front.mu.Lock()
	defer q.group.front.mu.Unlock()
	q.connSet.quicSockets = slices.DeleteFunc(q.connSet.quicSockets, func(other *quicSocket) bool { return other == q })
}

// closeTime is how long quicSocket.cut waits for the end of all connections, whose clients are notified, and for the
// socket to be closed.
const closeTime = time.Second

// cut closes the connections that are still open after GOAWAY was sent on them. Otherwise their clients would not
// notice when the process exits, because HTTP/3 uses UDP, and the kernel cannot close a QUIC connection.
func (q *quicSocket) cut() {
	q.cutOff()
	select {
	case <-q.closed:
	case <-time.After(closeTime):
	}
}

// quicClaim is the packet connection on which Caddy creates its HTTP/3 listener. That listener gets no connections,
// because ReadFrom never returns a datagram.
type quicClaim struct {
	socket *quicSocket
	once   sync.Once
	done   chan struct{}
}

func (c *quicClaim) ReadFrom([]byte) (int, net.Addr, error) {
	<-c.done
	return 0, nil, net.ErrClosed
}

func (c *quicClaim) WriteTo(b []byte, _ net.Addr) (int, error) { return len(b), nil }

// Close closes the socket, after its connections have ended. Caddy calls it when no configuration uses the address any
// longer.
func (c *quicClaim) Close() error {
	c.once.Do(func() {
		close(c.done)
		panics.Go("front/quic end", c.socket.end)
	})
	return nil
}

// LocalAddr returns the address of the socket. Caddy announces its port to clients.
func (c *quicClaim) LocalAddr() net.Addr { return c.socket.conn.LocalAddr() }

// Deadlines and buffer sizes are ignored: ReadFrom only returns after Close, and the kernel options are set on the
// socket itself.

func (*quicClaim) SetDeadline(time.Time) error      { return nil }
func (*quicClaim) SetReadDeadline(time.Time) error  { return nil }
func (*quicClaim) SetWriteDeadline(time.Time) error { return nil }
func (*quicClaim) SetReadBuffer(int) error          { return nil }
func (*quicClaim) SetWriteBuffer(int) error         { return nil }

// SyscallConn returns the raw connection of the socket.
func (c *quicClaim) SyscallConn() (syscall.RawConn, error) {
	inner, ok := c.socket.transport.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return inner.SyscallConn()
}
