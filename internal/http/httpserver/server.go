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

// Options are the limits of connections. They are read for each request, so changes take effect with the next request.
// A timeout of zero means no timeout. Timeouts that restart with each read or write may take up to a third longer, so
// that deadlines have to be changed less often.
type Options struct {
	// HeaderTimeout is the maximum time between the first byte and the end of a head. It also limits the time until the
	// first byte of a new connection.
	HeaderTimeout time.Duration
	// BodyTimeout is the maximum time between two reads of a request body. WriteTimeout is the maximum time during
	// which a client may accept no data of a response.
	BodyTimeout, WriteTimeout time.Duration
	// KeepAlive is how long a connection may wait for its next request.
	KeepAlive time.Duration
	// KeepAliveRequests is the maximum number of requests of a connection. Zero means no limit.
	KeepAliveRequests int
	// MaxHead is the maximum size of a head in bytes. Zero means 32 KiB.
	MaxHead int
	// Names defines which request header fields are kept. Other fields are removed, because endpoints may confuse their
	// names with other names.
	Names message.Names
}

// Server serves HTTP/1.1 connections. Its fields must not be changed after the first call of Serve.
type Server struct {
	// Handler serves one request. When it returns, the request, the writer and everything that belongs to them are
	// reused for the next request, except strings, the body and the context. If the handler writes no response, the
	// client gets 500. If it panics, the connection is closed.
	Handler func(w message.Writer, r *message.Request)
	// Options returns the current limits. The returned value must not change.
	Options func() *Options
	// HandOver gets a connection whose client uses HTTP/2 with prior knowledge. Its first reads return the bytes that
	// the server has already read. If it is nil, such clients are rejected.
	HandOver func(conn net.Conn)
	// Rejected is called for invalid requests, for which the handler is not called. The request contains the parts that
	// could be parsed. It may be nil.
	Rejected func(r *message.Request, reason *http1.Error)
	// Panicked is called with the value of a handler's panic, in the goroutine of the handler. It may be nil.
	Panicked func(value any)

	// closing is true after Shutdown or Close was called.
	closing atomic.Bool

	mu    sync.Mutex
	conns map[*conn]struct{}
	// gone is closed when the last connection has ended after Shutdown.
	gone chan struct{}
}

// Serve serves the requests of a connection until it ends. It then closes the connection, unless it was handed over or
// switched to another protocol. The handshake of a *tls.Conn must be complete.
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

// Shutdown closes connections as they become idle, and sends "Connection: close" in each response. It returns when all
// connections have ended, or with the error of the context. No new connections should be passed to Serve; if there are
// any, their first request is served.
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

// Drain closes idle connections at once, and each other connection after the response to its current request. It does
// not wait until they are closed.
func (s *Server) Drain() {
	s.closing.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.endWait()
	}
}

// IdleTime returns how long all connections have been idle. It returns false if there is no connection, or if a
// connection has a request in flight.
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

// Connections returns the number of connections, and how many of them are idle.
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

// plainTCP returns nc as a TCP connection if it has no wrapper, otherwise nil.
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
