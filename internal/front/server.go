package front

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"golang.org/x/net/http2"
)

// settings are what cannot be changed of an http.Server that runs. Connections that are open keep those they have.
type settings struct {
	read, head, write, idle time.Duration
	size                    int
	http1, http2            bool
}

// servers are for the connections with the same settings: one for HTTP/1.1, and for HTTP/2 in the clear, and one for HTTP/2 with TLS.
type servers struct{ one, two *server }

// server is an http.Server that is given its connections. It is a listener for that.
type server struct {
	*http.Server
	cohort *cohort
	conns  chan net.Conn
	once   sync.Once
	done   chan struct{}
	ending sync.Once
}

// start starts an http.Server as Caddy does it in its App.Start.
func (k *cohort) start(of settings, second bool) *server {
	s := &server{cohort: k, conns: make(chan net.Conn, handedAtOnce), done: make(chan struct{})}
	s.Server = &http.Server{
		ReadTimeout: of.read, ReadHeaderTimeout: of.head, WriteTimeout: of.write, IdleTimeout: of.idle, MaxHeaderBytes: of.size,
		Handler: k, Protocols: new(http.Protocols), ErrorLog: errorLog(),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				k.conns.Add(-1)
			}
		},
	}
	s.Protocols.SetHTTP1(of.http1)
	if second {
		s.Protocols.SetUnencryptedHTTP2(true)
		// Its errors are about cipher suites, which are not set here.
		_ = http2.ConfigureServer(s.Server, new(http2.Server)) //nolint:staticcheck // It is what Caddy does.
	} else {
		s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	go func() { _ = s.Serve(s) }() // Its error is that it was shut down.
	return s
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
		s.cohort.conns.Add(-1)
	}
}

// shutdown may be called more than once, and does not wait.
func (s *server) shutdown(ctx context.Context) {
	s.ending.Do(func() { go func() { _ = s.Shutdown(ctx) }() }) // Its error would be that of the context, which does not end.
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

// stdlib is the log of net/http, which outlives configurations.
func stdlib() *zap.Logger { return caddy.Log().Named("http.stdlib") }

// Limits are the time limits of a connection, 0 being none, and how large the head of a request may be.
type Limits struct {
	Read, Head, Write, Idle time.Duration
	HeadBytes               int
	// HTTP2 says that a client may speak HTTP/2 without TLS.
	HTTP2 bool
}

func (s settings) limits() Limits {
	return Limits{Read: s.read, Head: s.head, Write: s.write, Idle: s.idle, HeadBytes: s.size, HTTP2: s.http2}
}
