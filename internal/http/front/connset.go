package front

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// connSet holds the connections that drain together: all connections accepted while the Group had at least one running
// server. When the last server stops, the connSet drains: responses ask clients to close their connections, idle
// connections are closed, and requests in progress are finished.
type connSet struct {
	group *Group
	tls   *tls.Config
	// port is the port of the address at which the connections arrive, if Front.Open has opened that address. It is 0
	// for the server's own addresses.
	port uint16
	// sources is the number of open listeners. conns is the number of open connections. pending is the number of open
	// connections that no HTTP server has taken over yet.
	sources, conns, pending atomic.Int64
	leaving                 atomic.Bool
	ended                   chan struct{}
	// quicSockets are the sockets that serve HTTP/3. They are guarded by Front.mu.
	quicSockets []*quicSocket

	mu      sync.Mutex
	servers map[settings]*servers
	// latest is the pair of http.Servers (see the type servers) that got the most recent connection. It keeps running
	// even without connections. Every other pair is shut down when its last connection has ended.
	latest *servers
	// onLeave holds the functions that Drivers have registered with ConnInfo.OnLeave. They are called when the
	// connections have to end.
	onLeave map[*ConnInfo]func()
}

func newConnSet(g *Group) *connSet {
	return &connSet{
		group: g, tls: g.tlsConfig(), ended: make(chan struct{}), servers: map[settings]*servers{},
		onLeave: map[*ConnInfo]func(){},
	}
}

// ServeHTTP handles a request that net/http has read, with the server of the configuration that Caddy currently runs.
func (k *connSet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	binding := k.group.Binding()
	current := binding.limits.under(binding)
	t := trafficOf(r.Context())
	if t.secured != nil {
		r.TLS = t.secured
	}
	last := current.Last(int(t.requests.Add(1)))
	if (last || t.leaving.Load() || k.leaving.Load()) && r.Header["Upgrade"] == nil {
		w.Header().Set("Connection", "close")
	}
	t.answer(w, r, binding, current, k.port)
}

// expect counts a new connection. It must be called before begin, so that a draining connSet waits for this connection
// before it ends.
func (k *connSet) expect() {
	k.conns.Add(1)
	k.pending.Add(1)
}

// unexpect undoes a call of expect, for a connection that this connSet does not serve after all.
func (k *connSet) unexpect() {
	k.pending.Add(-1)
	k.conns.Add(-1)
}

// begin serves a connection that expect has counted, or closes it if the connection limiter rejects it. Each connection
// gets its own goroutine. A panic ends only this connection.
func (k *connSet) begin(conn net.Conn, m *connConfig) {
	var n *clientConn
	panics.Guard("front/connection", func() { n = k.enter(conn, m) }, func() { _ = conn.Close() })
	if n == nil {
		k.unexpect()
		return
	}
	if m.wrapping != nil {
		m.wrapping.transit.Add(1)
	}
	serve, end := func() { k.serve(n, m) }, func() { _ = n.Close() }
	panics.Go("front/connection", serve, end)
}

// serve serves a new connection. If the listener has listener wrappers, it passes the connection to them.
func (k *connSet) serve(n *clientConn, m *connConfig) {
	wrapped := false
	defer func() { k.settle(n, m, wrapped) }()
	if !n.readProxyHeader(m) {
		_ = n.Close()
		return
	}
	if w := m.wrapping; w != nil && w.beforeTLS != nil {
		wrapped = true
		w.push(w.beforeTLS, n, &inner{Conn: n, client: n, stage: w.beforeTLS})
		return
	}
	wrapped = k.serveOn(n, n, m)
}

// settle must be called when a goroutine has stopped working on a connection. It decrements the number of connections,
// unless a Driver or, if wrapped is true, a listener wrapper has taken the connection over.
func (k *connSet) settle(n *clientConn, m *connConfig, wrapped bool) {
	if wrapped || n.handed {
		return
	}
	if m.wrapping != nil {
		m.wrapping.transit.Add(-1)
	}
	k.pending.Add(-1)
	k.connEnded(n.place)
}

// serveOn performs the TLS handshake on conn, if the listener uses TLS, and passes the connection to the server for the
// negotiated protocol. conn is n, or the connection that listener wrappers have returned for n. If serveOn returns
// true, it has passed the connection to listener wrappers instead.
func (k *connSet) serveOn(n *clientConn, conn net.Conn, m *connConfig) (wrapped bool) {
	if !m.secure {
		k.passOn(n, conn, "", m)
		return false
	}
	secured, err := k.secure(n, conn, m)
	if err != nil {
		k.handshakeFailed(n, conn, err)
		return false
	}
	if w := m.wrapping; w != nil && w.afterTLS != nil {
		w.push(w.afterTLS, n, secured)
		return true
	}
	k.passOn(n, secured, secured.ConnectionState().NegotiatedProtocol, m)
	return false
}

// handshakeFailed closes a connection whose TLS handshake has failed, unless Divert has taken over the connection. It
// counts failed handshakes, and logs them only at debug level.
func (k *connSet) handshakeFailed(n *clientConn, conn net.Conn, err error) {
	if errors.Is(err, ErrTaken) {
		return
	}
	if refusePlainHTTP(err) {
		err = errPlainHTTP
	}
	if !n.ended.Load() {
		k.group.front.handshakeFailed(err)
	}
	client := conn.RemoteAddr()
	_ = conn.Close()
	stdlib().Debug("http: TLS handshake error", zap.Stringer("client", client), zap.Error(err))
}

// secure performs the TLS handshake. If the listener has a Divert function, secure calls it first; the time limit for
// the handshake includes this call.
func (k *connSet) secure(n *clientConn, conn net.Conn, m *connConfig) (*tls.Conn, error) {
	until := time.Now().Add(m.handshake)
	if err := conn.SetDeadline(until); err != nil {
		return nil, err
	}
	if m.divert != nil {
		var err error
		if conn, err = m.divert(conn, until); err != nil {
			return nil, err
		}
	}
	secured := k.tlsServer(n, conn, m)
	// The context has no deadline, because the deadline of the connection limits the handshake.
	ctx := context.Background() //nolint:forbidigo // A connection outlives configurations.
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	// The virtual host is not needed after the handshake. Drop the pointer, so that an open connection does not keep a
	// removed host in memory.
	n.hello.host = nil
	return secured, secured.SetDeadline(time.Time{})
}

// tlsServer returns the server side of a TLS connection.
func (k *connSet) tlsServer(n *clientConn, conn net.Conn, m *connConfig) *tls.Conn {
	if m.wrapping == nil || m.wrapping.afterTLS == nil {
		return tls.Server(conn, k.tls)
	}
	in := &inner{Conn: conn, client: n, stage: m.wrapping.afterTLS}
	in.secured = tls.Server(in, k.tls)
	return in.secured
}

// passOn passes a connection to the Driver (the HTTP server) for its protocol. protocol is the protocol negotiated by
// ALPN, or empty.
func (k *connSet) passOn(n *clientConn, conn net.Conn, protocol string, m *connConfig) {
	drive := k.group.front.Drivers[cmp.Or(protocol, http1)]
	if !m.http1 && protocol != http2 {
		k.group.front.handedOver(WithoutHTTP1)
		drive = serveByNetHTTP
	}
	if drive == nil {
		// The handshake was all that the client wanted: with acme-tls/1, a certificate authority validates a challenge.
		_ = conn.Close()
		return
	}
	n.handed = true
	if m.wrapping != nil {
		m.wrapping.transit.Add(-1)
	}
	panics.Guard("front/connection", func() { k.drive(drive, n, conn, m) }, func() { _ = conn.Close() })
}

// WithoutHTTP1 is passed to Front.HandedOver as the reason if net/http serves a connection because the server does not
// allow HTTP/1.1.
const WithoutHTTP1 = "protocols"

// serversFor returns the pair of http.Servers (see the type servers) for a new connection with the current limits. If
// no such pair is running, it starts a new pair. It increments the number of connections of the pair. The caller must
// call serverConnEnded when the connection has ended.
func (k *connSet) serversFor(m *connConfig) *servers {
	current := *m.limits.under(k.group.Binding())
	current.Streams = k.group.front.requests.streams(current.Streams)
	of := settingsOf(current, m.http1)
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.servers[of]
	if s == nil {
		s = &servers{settings: of}
		s.http1AndH2C, s.http2 = k.start(s, current.H2C), k.start(s, true)
		k.servers[of] = s
	}
	before := k.latest
	k.latest = s
	s.conns++
	k.retire(before)
	return s
}

// serverConnEnded decrements the number of connections of s, and shuts down s if it is no longer needed. It must be
// called when a connection for which serversFor was called has ended.
func (k *connSet) serverConnEnded(s *servers, place *connlimit.Place) {
	k.mu.Lock()
	s.conns--
	k.retire(s)
	k.mu.Unlock()
	k.connEnded(place)
}

// connEnded decrements the number of connections. It must be called when a connection that was passed to begin has
// ended.
func (k *connSet) connEnded(place *connlimit.Place) {
	k.conns.Add(-1)
	place.Leave()
}

// retire shuts down a pair of HTTP servers if it has no connections and is not k.latest. Each change of the limits
// starts a new pair. Without retire, the goroutines of the old pairs would run until the connSet ends. The caller must
// hold k.mu.
func (k *connSet) retire(s *servers) {
	if s == nil || s.conns > 0 || s == k.latest {
		return
	}
	delete(k.servers, s.settings)
	ctx := context.Background() //nolint:forbidigo // The servers have no connections to wait for.
	s.http1AndH2C.shutdown(ctx)
	s.http2.shutdown(ctx)
}

// drain starts a graceful shutdown of the connections in the connSet, and does not wait for it. It may be called only
// once.
func (k *connSet) drain(ctx context.Context) {
	k.leaving.Store(true)
	panics.Go("front/drain", func() { k.end(context.WithoutCancel(ctx)) })
}

// cut closes the HTTP/3 connections when the process exits, because their clients would not notice the exit. TCP
// connections need not be closed, because the kernel closes them.
func (k *connSet) cut() {
	k.group.front.mu.Lock()
	sockets := slices.Clone(k.quicSockets)
	k.group.front.mu.Unlock()
	for _, q := range sockets {
		q.cut()
	}
}

const (
	// drainInterval is the interval at which connSet.end checks for connections that are still open.
	drainInterval = 10 * time.Millisecond
	// idleEnd is the time after which a connection that has not sent a request counts as idle, as in net/http.
	idleEnd = 5 * time.Second
)

// end waits until all connections have ended, so that requests on accepted connections get their responses. For
// HTTP/1.1, it cannot simply call http.Server.Shutdown, which drops requests that the server has just read. It
// therefore calls Shutdown only when each HTTP/1.1 connection is either handling a request or has been idle for
// idleEnd.
func (k *connSet) end(ctx context.Context) {
	defer close(k.ended)
	k.callOnLeave()
	begin := time.Now()
	for k.sources.Load() > 0 || k.conns.Load() > 0 {
		k.mu.Lock()
		for _, s := range k.servers {
			s.http1AndH2C.SetKeepAlivesEnabled(false)
			if k.sources.Load() == 0 && k.pending.Load() == 0 {
				s.http2.shutdown(ctx)
				if time.Since(begin) > idleEnd {
					s.http1AndH2C.shutdown(ctx)
				}
			}
		}
		k.mu.Unlock()
		<-time.After(drainInterval)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.servers {
		s.http1AndH2C.shutdown(ctx)
		s.http2.shutdown(ctx)
	}
}
