package front

import (
	"crypto/tls"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// wrapping passes the connections of one listener through the listener wrappers of a Binding. It belongs to one
// configuration, like the wrappers. When the configuration ends, wrapping.end lets the wrappers return the connections
// that they have just got. These connections are then served like all others, so a reload loses none of them.
type wrapping struct {
	conns  *connSet
	config *connConfig
	// beforeTLS and afterTLS are nil if there are no such wrappers. On a listener without TLS, beforeTLS has all
	// wrappers.
	beforeTLS, afterTLS *stage
	// transit is the number of connections that were accepted, and neither have left the last wrapper nor have ended.
	transit atomic.Int64

	// held maps each connection that a wrapper holds to true, or to false if the drain of the connSet no longer waits
	// for the connection. mu guards held.
	mu   sync.Mutex
	held map[*clientConn]bool
}

// wrap makes the wrappers of the Binding wrap the connections of a listener with the address at. k holds these
// connections. wrap does nothing if the Binding has no wrappers. unwrap must be called when the listener is closed.
func (m *connConfig) wrap(k *connSet, at net.Addr) {
	before, after := m.of.BeforeTLS, m.of.AfterTLS
	if len(before)+len(after) == 0 {
		return
	}
	w := &wrapping{conns: k, config: m, held: map[*clientConn]bool{}}
	k.sources.Add(1)
	if !m.secure {
		before, after = append(before[:len(before):len(before)], after...), nil
	}
	w.beforeTLS = w.newStage(at, before, w.wrappedBelowTLS)
	w.afterTLS = w.newStage(at, after, w.wrappedAboveTLS)
	m.wrapping = w
}

// unwrap ends the wrapping of the connections of a listener. It does not block.
func (m *connConfig) unwrap() {
	if m.wrapping != nil {
		panics.Go("front/wrappers", m.wrapping.end)
	}
}

// settleTime is the time for which wrapping.end waits for connections that were accepted just before the end, and that
// it does not count yet.
const settleTime = 100 * time.Millisecond

// end waits until the wrappers have returned the connections that were accepted, for at most idleEnd, and closes the
// listeners. A connection that a wrapper still holds then belongs to the wrapper alone.
func (w *wrapping) end() {
	begin := time.Now()
	for {
		past := time.Since(begin)
		if past >= settleTime && w.transit.Load() == 0 || past >= idleEnd {
			break
		}
		<-time.After(drainInterval)
	}
	for _, s := range []*stage{w.beforeTLS, w.afterTLS} {
		if s != nil {
			s.end()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, counted := range w.held {
		if counted {
			w.held[n] = false
			w.conns.unexpect()
		}
	}
	w.conns.sources.Add(-1)
}

// push passes a connection to the wrappers of a stage. The caller must not use the connection afterwards.
func (w *wrapping) push(s *stage, n *clientConn, conn net.Conn) {
	w.mu.Lock()
	w.held[n] = true
	w.mu.Unlock()
	select {
	case s.queue <- conn:
	case <-s.done:
		_ = conn.Close()
	}
}

// release records that no wrapper holds a connection any more. ok is false if no wrapper held it. counted is false if
// the drain of the connSet does not wait for the connection.
func (w *wrapping) release(n *clientConn) (counted, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	counted, ok = w.held[n]
	delete(w.held, n)
	return counted, ok
}

// closed is called when a connection is closed. If a wrapper has closed it, closed stops counting the connection.
func (w *wrapping) closed(n *clientConn) {
	switch counted, ok := w.release(n); {
	case counted:
		w.transit.Add(-1)
		w.conns.pending.Add(-1)
		w.conns.connEnded(n.place)
	case ok:
		n.place.Leave()
	}
}

// wrappedBelowTLS serves a connection that has left the wrappers of beforeTLS. The address of its client is known only
// now, because a wrapper may have read a PROXY protocol header.
func (w *wrapping) wrappedBelowTLS(n *clientConn, conn net.Conn, _ *tls.Conn) {
	m, wrapped := w.config, false
	defer func() { w.conns.settle(n, m, wrapped) }()
	if !n.leaveWrapper(m.of.client(conn.RemoteAddr())) {
		_ = conn.Close()
		return
	}
	wrapped = w.conns.serveOn(n, conn, m)
}

// wrappedAboveTLS serves a connection that has left the wrappers of afterTLS. secured is the TLS connection that the
// wrappers have wrapped, or nil if they have returned another connection.
func (w *wrapping) wrappedAboveTLS(n *clientConn, conn net.Conn, secured *tls.Conn) {
	defer w.conns.settle(n, w.config, false)
	protocol := ""
	if s, ok := conn.(connectionStater); ok {
		protocol = s.ConnectionState().NegotiatedProtocol
	}
	if secured != nil {
		protocol = secured.ConnectionState().NegotiatedProtocol
	}
	w.conns.passOn(n, conn, protocol, w.config)
}

// stage is a chain of listener wrappers, together with the listener that the first of them wraps. Accept of this
// listener returns the connections that were passed to wrapping.push.
type stage struct {
	of      *wrapping
	at      net.Addr
	queue   chan net.Conn
	once    sync.Once
	done    chan struct{}
	wrapped net.Listener
	// next serves a connection that the last wrapper has returned.
	next func(n *clientConn, conn net.Conn, secured *tls.Conn)
}

func (w *wrapping) newStage(at net.Addr, wrappers []caddy.ListenerWrapper,
	next func(*clientConn, net.Conn, *tls.Conn)) *stage {
	if len(wrappers) == 0 {
		return nil
	}
	s := &stage{of: w, at: at, queue: make(chan net.Conn), done: make(chan struct{}), next: next}
	s.wrapped = s
	for _, wrapper := range wrappers {
		s.wrapped = wrapper.WrapListener(s.wrapped)
	}
	panics.Loop("front/accept", func() { acceptAll(untilDone{s.wrapped, s}, s.take) })
	return s
}

// Accept returns the next connection for the wrappers.
func (s *stage) Accept() (net.Conn, error) {
	select {
	case conn := <-s.queue:
		return conn, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

// Close is called by the wrappers.
func (s *stage) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}

// Addr returns the address of the listener.
func (s *stage) Addr() net.Addr { return s.at }

func (s *stage) end() {
	_ = s.Close()
	// Ignore the error: no connection is lost if a wrapper cannot close its listener.
	_ = s.wrapped.Close()
}

// untilDone is the listener of the last wrapper of a stage. After the end of the stage, Accept returns net.ErrClosed,
// whatever error the wrapper returns.
type untilDone struct {
	net.Listener
	stage *stage
}

func (u untilDone) Accept() (net.Conn, error) {
	conn, err := u.Listener.Accept()
	select {
	case <-u.stage.done:
		if err != nil {
			err = net.ErrClosed
		}
	default:
	}
	return conn, err
}

// take serves a connection that the last wrapper has returned.
func (s *stage) take(conn net.Conn) {
	in := s.find(conn)
	if in == nil {
		s.takeOther(conn)
		return
	}
	counted, ok := s.of.release(in.client)
	if !counted {
		// The drain does not wait for the connection any more, or a wrapper has closed it.
		if ok {
			in.client.place.Leave()
		}
		_ = conn.Close()
		return
	}
	panics.Go("front/connection", func() {
		s.next(in.client, wrappedConnOf(conn, in), in.secured)
	}, func() { _ = conn.Close() })
}

// takeOther serves a connection that is not one of the front's connections, such as a connection through a tunnel that
// a wrapper terminates.
func (s *stage) takeOther(conn net.Conn) {
	k := s.of.conns
	k.expect()
	s.of.transit.Add(1)
	panics.Go("front/connection", func() {
		n := &clientConn{Conn: conn, since: time.Now(), hello: hello{port: k.port}}
		if n.place = k.group.front.clients.Enter(s.of.config.of.client(conn.RemoteAddr()), n); n.place == nil {
			_ = conn.Close()
			s.of.transit.Add(-1)
			k.unexpect()
			return
		}
		s.next(n, wrappedConnOf(conn, &inner{client: n}), nil)
	}, func() { _ = conn.Close() })
}

// inner is the connection that the wrappers of a stage get. For the wrappers after TLS, it is below TLS, because some
// wrappers need a *tls.Conn. It tells the stage when a wrapper closes the connection.
type inner struct {
	net.Conn
	client *clientConn
	stage  *stage
	// secured is the TLS connection above, or nil for the wrappers before TLS.
	secured *tls.Conn
}

// NetConn returns the underlying connection.
func (i *inner) NetConn() net.Conn { return i.Conn }

// Close closes the connection.
func (i *inner) Close() error {
	i.stage.of.closed(i.client)
	return i.Conn.Close()
}

// find returns the connection of the stage that conn wraps, or nil if conn wraps no connection of the stage.
func (s *stage) find(conn net.Conn) *inner {
	for conn != nil {
		if in, ok := conn.(*inner); ok && in.stage == s {
			return in
		}
		below := netconn.Below(conn)
		if below == nil {
			below = embedded(conn)
		}
		conn = below
	}
	return nil
}

// embedded returns the connection that is embedded in the struct conn, or nil if conn embeds no connection. Connections
// of wrappers seldom have a method such as NetConn, and nearly always embed the connection that they wrap.
func embedded(conn net.Conn) net.Conn {
	v := reflect.Indirect(reflect.ValueOf(conn))
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Anonymous && f.IsExported() {
			if below, ok := v.Field(i).Interface().(net.Conn); ok {
				return below
			}
		}
	}
	return nil
}

type connectionStater interface{ ConnectionState() tls.ConnectionState }

// wrappedConn is a connection that the wrappers of a stage have returned.
type wrappedConn struct {
	net.Conn
	client *clientConn
}

// wrappedTLS is a wrappedConn with TLS.
type wrappedTLS struct {
	wrappedConn
	connectionStater
	secured *tls.Conn
}

// wrappedConnOf returns the connection to serve for conn, which the wrappers have returned for the connection in.
func wrappedConnOf(conn net.Conn, in *inner) net.Conn {
	if in.secured != nil && conn == net.Conn(in.secured) {
		return conn
	}
	w := wrappedConn{conn, in.client}
	if s, ok := conn.(connectionStater); ok {
		return &wrappedTLS{w, s, in.secured}
	}
	if in.secured != nil {
		return &wrappedTLS{w, in.secured, in.secured}
	}
	return &w
}

// wrappedHTTP2 is a connection with TLS that net/http serves with HTTP/2. net/http only allows HTTP/2 on a connection
// that is a *tls.Conn, or that has no method ConnectionState. So wrappedHTTP2 hides this method, and connSet.ServeHTTP
// sets the TLS state of requests.
type wrappedHTTP2 struct {
	net.Conn
	secured tls.ConnectionState
}

// NetConn returns the underlying connection.
func (w *wrappedHTTP2) NetConn() net.Conn { return w.Conn }

// asHTTP2 returns the connection that net/http has to serve with HTTP/2 for conn, a connection with TLS.
func asHTTP2(conn net.Conn) net.Conn {
	if w, ok := conn.(*wrappedTLS); ok {
		return &wrappedHTTP2{w, w.ConnectionState()}
	}
	return conn
}

// NetConn returns the connection that the wrappers have returned.
func (w *wrappedConn) NetConn() net.Conn { return w.Conn }

func (w *wrappedConn) clientConn() *clientConn { return w.client }

func (w *wrappedConn) handshake() *hello { return &w.client.hello }

// CloseWrite closes the write side of the connection.
func (w *wrappedTLS) CloseWrite() error {
	if w.secured != nil {
		return w.secured.CloseWrite()
	}
	return netconn.CloseWrite(w.Conn)
}
