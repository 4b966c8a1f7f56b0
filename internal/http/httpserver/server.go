// Package httpserver serves HTTP/1.1. It uses package http1 on client connections, with one goroutine for each
// connection.
//
// It is used instead of net/http because it needs less work for each request: requests are parsed into reused values, a
// short response is sent with a single write, and an idle connection holds no buffer. A Server reads its options for
// each request, so it serves a connection across configuration changes.
package httpserver

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
)

// Options are the limits for connections. They are read again for each request, so changes take effect with the next
// request. A timeout of zero means no timeout. Timeouts that restart with each read or write may be up to a third
// longer than configured, so that deadlines do not have to be set for each read or write.
type Options struct {
	// HeaderTimeout is the maximum time between the first byte and the end of a request head. It is also the maximum
	// time until the first byte on a new connection.
	HeaderTimeout time.Duration
	// BodyTimeout is the maximum time between two reads of a request body. WriteTimeout is the maximum time for which a
	// client may stop receiving data of a response.
	BodyTimeout, WriteTimeout time.Duration
	// KeepAlive is how long a connection may stay idle between two requests.
	KeepAlive time.Duration
	// KeepAliveRequests is the maximum number of requests on one connection. Zero means no limit.
	KeepAliveRequests int
	// MaxHead is the maximum size of a request head in bytes. Zero means 32 KiB.
	MaxHead int
	// Names defines which request header fields with unusual characters in their names are kept. Such fields are
	// removed by default, because endpoints may confuse their names with other names.
	Names message.Names
}

// Server serves HTTP/1.1 connections. Its fields must not be changed after the first call of Serve.
type Server struct {
	// Handler serves one request. After it returns, the request and the writer are reused for the next request, so the
	// handler must not keep them. It may keep strings, the body and the context. If the handler writes no response, the
	// client gets 500. If the handler panics, the connection is closed.
	Handler func(w message.Writer, r *message.Request)
	// Options returns the current limits. The value that it returns must never be modified.
	Options func() *Options
	// HandOver is called with a connection whose client uses HTTP/2 with prior knowledge. Reads from the connection
	// first return the bytes that the server has already read. If HandOver is nil, such clients are rejected.
	HandOver func(conn net.Conn)
	// Rejected is called for invalid requests, for which Handler is not called. r contains the parts that could be
	// parsed. Rejected may be nil.
	Rejected func(r *message.Request, reason *http1.Error)
	// Panicked is called if Handler panics, with the value of the panic and in the same goroutine. Panicked may be nil.
	Panicked func(value any)

	// closing is true after a call of Shutdown, Drain or Close.
	closing atomic.Bool

	mu    sync.Mutex
	conns map[*conn]struct{}
	// gone is closed when the last connection has ended. It is nil until Shutdown is called.
	gone chan struct{}
}

// Serve serves the requests of a connection until it ends. It then closes the connection, unless another owner has
// taken it over, for example after an upgrade to WebSocket. The TLS handshake of a *tls.Conn must be complete.
func (s *Server) Serve(nc net.Conn, info *message.Conn) {
	c := newConn(s, nc, info)
	s.add(c)
	defer s.remove(c)
	c.serve()
}

func (s *Server) add(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = map[*conn]struct{}{}
	}
	s.conns[c] = struct{}{}
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if len(s.conns) == 0 && s.gone != nil {
		close(s.gone)
		s.gone = nil
	}
}

// Shutdown closes idle connections, and closes the other connections after their current response, which contains
// "Connection: close". It returns when all connections have ended, or with the error of ctx when ctx ends. New
// connections that are passed to Serve after this still get a response to their first request.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closing.Store(true)
	s.mu.Lock()
	for c := range s.conns {
		c.endIdle()
	}
	if len(s.conns) == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.gone == nil {
		s.gone = make(chan struct{})
	}
	gone := s.gone
	s.mu.Unlock()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Drain closes idle connections immediately, and the other connections after their current response. It does not wait
// until they are closed.
func (s *Server) Drain() {
	s.closing.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.endWait()
	}
}

// IdleTime returns how long all connections have been idle: the time since the last request on any of them. It returns
// false if there is no connection, or if a request is in flight.
func (s *Server) IdleTime() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := time.Duration(0)
	for c := range s.conns {
		if c.state.Load() == stateActive {
			return 0, false
		}
		since = max(since, time.Duration(c.idleSince.Load()))
	}
	return time.Since(processStart) - since, len(s.conns) > 0
}

// Close closes all connections immediately.
func (s *Server) Close() {
	s.closing.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.nc.Close()
	}
}

// Connections returns the number of open connections, and how many of them are idle.
func (s *Server) Connections() (all, idle int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.state.Load() == stateIdle {
			idle++
		}
	}
	return len(s.conns), idle
}

// plainTCP returns nc as a *net.TCPConn, or nil if nc has another type, such as *tls.Conn.
func plainTCP(nc net.Conn) *net.TCPConn {
	tcp, _ := nc.(*net.TCPConn)
	return tcp
}

// lowerTCP returns the TCP connection under TLS and other wrappers, or nil.
func lowerTCP(nc net.Conn) *net.TCPConn {
	for {
		switch wrapper := nc.(type) {
		case *net.TCPConn:
			return wrapper
		case *tls.Conn:
			nc = wrapper.NetConn()
		case interface{ NetConn() net.Conn }:
			nc = wrapper.NetConn()
		case interface{ Raw() net.Conn }:
			nc = wrapper.Raw()
		default:
			return nil
		}
	}
}
