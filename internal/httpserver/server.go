// Package httpserver serves HTTP/1.1 on connections: it drives package http1 for clients, with one goroutine for each connection.
//
// It exists beside net/http because most of what a request costs there is not the request: here a request is read into values that
// are used again, its answer leaves with one write, and a connection that waits holds no buffer. Servers live as long as the process,
// so a change of configuration never meets a connection.
package httpserver

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/http1"
	"github.com/k8singress/k8singress/internal/message"
)

// Options are the limits of connections. They are read for each request, so they take effect at once. A time limit of zero is none;
// what is counted from the last byte may take a third longer, so that deadlines are moved seldom.
type Options struct {
	// HeaderTimeout is how long a head may take from its first byte, and a new connection until then.
	HeaderTimeout time.Duration
	// BodyTimeout is how long a client may send nothing of a body. WriteTimeout is how long it may take nothing of an answer.
	BodyTimeout, WriteTimeout time.Duration
	// KeepAlive is how long a connection may wait for its next request.
	KeepAlive time.Duration
	// KeepAliveRequests is how many requests a connection may have; zero is any number.
	KeepAliveRequests int
	// MaxHead is how many bytes a head may have.
	MaxHead int
	// Names say which fields go on.
	Names message.Names
}

// Server answers requests. Its fields are not changed once it serves.
type Server struct {
	// Handler answers one request. Request, Writer and all that hangs on them but strings, the body and the context are used for the
	// next one when it returns. Without an answer the client gets 500; a panic ends the connection.
	Handler func(w message.Writer, r *message.Request)
	// Options returns the limits as they are now. They are not changed afterwards.
	Options func() *Options
	// HandOver gets a connection that begins with HTTP/2 without having asked; what has been read comes first when it is read. Without,
	// such clients are refused.
	HandOver func(conn net.Conn)
	// Refused hears of what was answered without the handler, with as much of the request as could be read.
	Refused func(r *message.Request, reason *http1.Error)
	// Panicked hears of the panic of a handler, in the goroutine where it happened.
	Panicked func(value any)

	// closing says that Shutdown has been called.
	closing atomic.Bool

	mu    sync.Mutex
	conns map[*conn]struct{}
	// gone is closed when the last connection has ended after Shutdown.
	gone chan struct{}
}

// Serve answers the requests of a connection until it ends, and closes it, unless it is handed over or switched to another protocol. A
// *tls.Conn has had its handshake.
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

// Shutdown ends connections as they become idle, and says so to clients in each answer from now on. It returns when all have ended, or
// with the error of the context. New connections should not come any more; their first request is answered.
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

// Close ends all connections where they are.
func (s *Server) Close() {
	s.closing.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.nc.Close()
	}
}

// Connections returns how many there are, and how many of them wait for a request.
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

// bare returns the TCP connection whose bytes are those of the protocol, or nil.
func bare(nc net.Conn) *net.TCPConn {
	tcp, _ := nc.(*net.TCPConn)
	return tcp
}

// below returns the TCP connection under TLS and other wrappers, or nil.
func below(nc net.Conn) *net.TCPConn {
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
