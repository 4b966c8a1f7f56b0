package front

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"golang.org/x/net/http2"

	"github.com/k8singress/k8singress/internal/connlimit"
	"github.com/k8singress/k8singress/internal/logs"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/panics"
)

// settings are what cannot be changed of an http.Server that runs. Connections that are open keep those they have.
type settings struct {
	read, head, write, idle time.Duration
	size, streams           int
	http1, http2            bool
}

// servers are for the connections with the same settings: one for HTTP/1.1, and for HTTP/2 in the clear, and one for HTTP/2 with TLS.
type servers struct {
	settings settings
	one, two *server
	// conns is the number of open connections. It belongs to the lock of the cohort.
	conns int
}

// server is an http.Server that is given its connections. It is a listener for that.
type server struct {
	*http.Server
	cohort *cohort
	of     *servers
	conns  chan net.Conn
	once   sync.Once
	done   chan struct{}
	ending sync.Once
}

// start starts an http.Server as Caddy does it in its App.Start.
func (k *cohort) start(all *servers, second bool) *server {
	of := all.settings
	s := &server{cohort: k, of: all, conns: make(chan net.Conn, handedAtOnce), done: make(chan struct{})}
	s.Server = &http.Server{
		ReadTimeout: of.read, ReadHeaderTimeout: of.head, WriteTimeout: of.write, IdleTimeout: of.idle, MaxHeaderBytes: of.size,
		Handler: k, Protocols: new(http.Protocols), ErrorLog: errorLog(), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: of.streams},
		ConnContext: s.began,
		ConnState:   s.changed,
	}
	s.Protocols.SetHTTP1(of.http1)
	if second {
		s.Protocols.SetUnencryptedHTTP2(true)
		// Its errors are about cipher suites, which are not set here.
		_ = http2.ConfigureServer(s.Server, new(http2.Server)) //nolint:staticcheck // It is what Caddy does.
	} else {
		s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	panics.Go("front/server", func() { _ = s.Serve(s) }) // Its error is that it was shut down.
	return s
}

// began begins to follow the traffic of a connection.
func (s *server) began(ctx context.Context, conn net.Conn) context.Context {
	n := newcomerOf(conn)
	n.served = &served{conn: conn, below: n}
	n.served.begin(s.cohort.group.front, n.place)
	n.served.waits.Store(true)
	n.place.Occupy(n.served)
	return context.WithValue(ctx, trafficKey{}, &n.served.traffic)
}

// served is a connection that net/http serves.
type served struct {
	traffic
	// conn is the connection, and below what is below TLS.
	conn, below net.Conn
	// waits says that there is no request.
	waits atomic.Bool
}

// State implements connlimit.Occupant.
func (s *served) State() (connlimit.State, time.Duration) { return s.state(s.waits.Load()) }

// End implements connlimit.Occupant.
func (s *served) End() {
	switch state, _ := s.State(); state {
	case connlimit.Idle:
		_ = s.conn.Close()
	case connlimit.Stalled:
		// The last words of TLS would wait until the client takes them.
		_ = s.below.Close()
	default:
		s.leaving.Store(true)
	}
}

// changed follows a connection that net/http serves.
func (s *server) changed(conn net.Conn, state http.ConnState) {
	n := newcomerOf(conn)
	n.served.waits.Store(state == http.StateNew || state == http.StateIdle)
	n.served.touch()
	if state == http.StateClosed || state == http.StateHijacked {
		n.served.leave()
		s.cohort.left(s.of, n.place)
	}
}

// handedAtOnce is how many connections may wait for net/http, so that whoever accepts them need not. It begins to serve each at once.
const handedAtOnce = 64

// push serves a connection. Nothing is pushed any more when the server is shut down, but by mistake.
func (s *server) push(conn net.Conn) {
	select {
	case s.conns <- conn:
	case <-s.done:
		_ = conn.Close()
		s.cohort.pending.Add(-1)
		s.cohort.left(s.of, newcomerOf(conn).place)
	}
}

// shutdown may be called more than once, and does not wait.
func (s *server) shutdown(ctx context.Context) {
	// The error would be that of the context, which does not end.
	s.ending.Do(func() { panics.Go("front/shutdown", func() { _ = s.Shutdown(ctx) }) })
}

func (s *server) Accept() (net.Conn, error) {
	select {
	case conn := <-s.conns:
		s.cohort.pending.Add(-1)
		return conn, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *server) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}

// Addr is that of no socket.
func (*server) Addr() net.Addr { return &net.TCPAddr{} }

// stdlib is the log of net/http.
func stdlib() *zap.Logger { return logs.Logger("http.stdlib") }

// Limits are those of a connection. A time that is 0 is no limit.
type Limits struct {
	// Read and Write are for all of a request, and for all of its answer. Head is for the head of a request. Body is how long nothing
	// may come of its body, and Send how long nothing of the answer may be taken. Idle is how long the next request is waited for.
	Read, Head, Body, Write, Send, Idle time.Duration
	// HeadBytes is how large the head of a request may be.
	HeadBytes int
	// Requests is how many a connection may have, and Streams how many of HTTP/2 at a time; 0 is any number, and Go's own limit.
	Requests, Streams int
	// HTTP2 says that a client may speak HTTP/2 without TLS.
	HTTP2 bool
	// Names say which fields of a request go on.
	Names message.Names
}

// settings are those of an http.Server for connections with the limits.
func (l *Limits) settings(http1 bool) settings {
	return settings{
		read: l.Read, head: l.Head, write: l.Write, idle: l.Idle, size: l.HeadBytes, streams: l.Streams, http1: http1, http2: l.HTTP2,
	}
}

// limitsOf are those that a server of Caddy has.
func limitsOf(v *caddyhttp.Server) Limits {
	return Limits{
		Read: time.Duration(v.ReadTimeout), Head: time.Duration(v.ReadHeaderTimeout), Body: time.Duration(v.ReadIdleTimeout),
		Write: time.Duration(v.WriteTimeout), Send: time.Duration(v.WriteIdleTimeout), Idle: time.Duration(v.IdleTimeout),
		HeadBytes: v.MaxHeaderBytes,
	}
}
