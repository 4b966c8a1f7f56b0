package front

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	xhttp2 "golang.org/x/net/http2"

	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/process/connlimit"
	"github.com/k8singress/k8singress/internal/process/logs"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// settings are the settings of an http.Server that cannot be changed while it runs. If they change, a new http.Server
// is started for new connections, and open connections stay on the old one.
type settings struct {
	// limits are the limits that an http.Server applies itself.
	limits limits.Limits
	http1  bool
}

// settingsOf returns the settings of an http.Server for connections with the given limits. The limits that apply per
// request are left out, because they do not need another http.Server; each new one must be added here. http1 allows
// HTTP/1.1.
func settingsOf(l limits.Limits, http1 bool) settings {
	l.Body, l.Requests, l.Names = 0, 0, message.PlainNames
	return settings{l, http1}
}

// servers are the two http.Servers for all connections with the same settings. http1AndH2C serves HTTP/1.1, and HTTP/2
// without TLS. http2 serves HTTP/2 with TLS.
type servers struct {
	settings           settings
	http1AndH2C, http2 *server
	// conns is the number of open connections of both servers. It is guarded by connSet.mu.
	conns int
}

// server is an http.Server together with its listener. Accept returns the connections that were passed to push.
type server struct {
	*http.Server
	connSet *connSet
	of      *servers
	conns   chan net.Conn
	once    sync.Once
	done    chan struct{}
	ending  sync.Once
}

// maxFrame is the maximum size, in bytes, of an HTTP/2 frame that a client may send. It is the smallest maximum that
// RFC 9113 allows. A connection keeps a buffer of the size of the largest frame that it has received, so with Go's
// default a client could occupy 1 MiB with one frame.
const maxFrame = 16 << 10

// start starts an http.Server with the same options as App.Start of Caddy's http app. If second is true, the server
// also supports HTTP/2.
func (k *connSet) start(all *servers, second bool) *server {
	of := &all.settings.limits
	s := &server{connSet: k, of: all, conns: make(chan net.Conn, maxHandedOver), done: make(chan struct{})}
	s.Server = &http.Server{
		ReadTimeout: of.Read, ReadHeaderTimeout: of.Head, WriteTimeout: of.Write, IdleTimeout: of.Idle,
		MaxHeaderBytes: of.HeadBytes,
		Handler:        k, Protocols: new(http.Protocols), ErrorLog: errorLog(), ConnContext: s.connContext,
		ConnState: s.connState,
		// WriteByteTimeout ends a write when the client does not read from its TCP connection. The write deadline of
		// the response does not end such a write if the client has granted enough HTTP/2 flow control window.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: of.Streams, MaxReadFrameSize: maxFrame,
			WriteByteTimeout: of.Send},
		// If this option is not set, net/http answers "OPTIONS *" itself, and the request does not appear in the access
		// log.
		DisableGeneralOptionsHandler: true,
	}
	s.Protocols.SetHTTP1(all.settings.http1)
	if second {
		s.Protocols.SetUnencryptedHTTP2(true)
		// ConfigureServer only fails for invalid cipher suites, and none are set here.
		_ = xhttp2.ConfigureServer(s.Server, new(xhttp2.Server)) //nolint:staticcheck // Caddy calls it, too.
	} else {
		s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	panics.Go("front/server", func() {
		defer s.refuseWaiting()
		_ = s.Serve(s) // Serve only returns http.ErrServerClosed, after it has closed s.
	})
	return s
}

// connContext starts tracking the traffic of a connection, and makes it available to trafficOf.
func (s *server) connContext(ctx context.Context, conn net.Conn) context.Context {
	n := clientConnOf(conn)
	n.netHTTP = &netHTTPConn{conn: conn, below: n}
	n.netHTTP.begin(s.connSet.group.front, n.place)
	if w, ok := conn.(*wrappedHTTP2); ok {
		n.netHTTP.secured = &w.secured
	}
	n.netHTTP.idle.Store(true)
	n.place.Occupy(n.netHTTP)
	return context.WithValue(ctx, trafficKey{}, &n.netHTTP.traffic)
}

// netHTTPConn is a connection that net/http serves.
type netHTTPConn struct {
	traffic
	// conn is the connection that net/http serves. If it uses TLS, below is the connection underneath TLS.
	conn, below net.Conn
	// idle is true while no request is in progress.
	idle atomic.Bool
}

// State implements connlimit.Occupant.
func (s *netHTTPConn) State() (connlimit.State, time.Duration) { return s.state(s.idle.Load()) }

// End implements connlimit.Occupant.
func (s *netHTTPConn) End() {
	switch state, _ := s.State(); state {
	case connlimit.Idle:
		_ = s.conn.Close()
	case connlimit.Stalled:
		// Closing the TLS connection would block until the client reads the close_notify alert.
		_ = s.below.Close()
	default:
		s.leaving.Store(true)
	}
}

// connState is called by net/http when the state of a connection changes. It records the new state.
func (s *server) connState(conn net.Conn, state http.ConnState) {
	n := clientConnOf(conn)
	n.netHTTP.idle.Store(state == http.StateNew || state == http.StateIdle)
	n.netHTTP.touch()
	if state == http.StateClosed || state == http.StateHijacked {
		n.netHTTP.leave()
		s.connSet.serverConnEnded(s.of, n.place)
	}
}

// maxHandedOver is the number of connections that can wait to be accepted by net/http before push blocks the accept
// loop. net/http accepts each connection at once.
const maxHandedOver = 64

// push passes a connection to net/http. If the http.Server has already been shut down, push closes the connection. This
// happens if a connection is handed over to net/http after the shutdown has begun.
func (s *server) push(conn net.Conn) {
	select {
	case s.conns <- conn:
		if s.isDone() {
			s.refuseWaiting()
		}
	case <-s.done:
		s.refuse(conn)
	}
}

func (s *server) isDone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// refuse closes a connection that was passed to push, but that net/http will not serve.
func (s *server) refuse(conn net.Conn) {
	_ = conn.Close()
	s.connSet.pending.Add(-1)
	s.connSet.serverConnEnded(s.of, clientConnOf(conn).place)
}

// refuseWaiting closes the connections that are still in s.conns, because net/http no longer accepts them. It is called
// when Serve has returned. After that, push also calls it each time that it has added a connection to s.conns. Close
// must not call refuseWaiting, because net/http holds a lock during Close.
func (s *server) refuseWaiting() {
	for {
		select {
		case conn := <-s.conns:
			s.refuse(conn)
		default:
			return
		}
	}
}

// shutdown starts a graceful shutdown of the server. It may be called more than once, and does not block.
func (s *server) shutdown(ctx context.Context) {
	// Ignore the error: Shutdown only fails if its context is canceled, and ctx is never canceled.
	s.ending.Do(func() { panics.Go("front/shutdown", func() { _ = s.Shutdown(ctx) }) })
}

func (s *server) Accept() (net.Conn, error) {
	select {
	case conn := <-s.conns:
		s.connSet.pending.Add(-1)
		return conn, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *server) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}

// Addr returns an empty address, because the server does not own a socket.
func (*server) Addr() net.Addr { return &net.TCPAddr{} }

// stdlib returns the logger for messages of net/http.
func stdlib() *zap.Logger { return logs.Logger("http.stdlib") }

// limitsOfServer returns the limits that are configured in the Caddy server.
func (s *Binding) limitsOfServer() limits.Limits {
	v := s.Server
	return limits.Limits{
		Read: time.Duration(v.ReadTimeout), Head: time.Duration(v.ReadHeaderTimeout),
		Body:  time.Duration(v.ReadIdleTimeout),
		Write: time.Duration(v.WriteTimeout), Send: time.Duration(v.WriteIdleTimeout),
		Idle:      time.Duration(v.IdleTimeout),
		HeadBytes: v.MaxHeaderBytes, HeadFixed: s.HeadFixed,
	}
}
