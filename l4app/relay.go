package l4app

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mholt/caddy-l4/layer4"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/pools"
)

var (
	errIdle = errors.New("nothing was said for too long")
	errGone = errors.New("the endpoint has been gone for longer than connections are drained")
	// errUnwanted is for those of passthrough, too.
	errUnwanted = errors.New("the port, or what passed the connection through, has been gone for longer than connections are drained")
)

// link is a client's connection with an endpoint.
type link struct {
	client, backend side
	endpoint        *balancer.Endpoint
	// up and down count the bytes that have gone to the endpoint and to the client. They are what tells that something moves.
	up, down atomic.Uint64
	// cause is why it was ended, if it did not end by itself.
	cause atomic.Pointer[error]

	// What follows belongs to the watch.
	counted   [2]uint64
	moved     time.Time
	goneSince time.Time
}

// carry copies both ways until both sides have said all. When one has, the other one is told so and may go on. What is in
// ahead was read of the client before.
func (l *link) carry(ahead []byte, by *workerPool) error {
	if len(ahead) > 0 {
		if _, err := l.backend.Write(ahead); err != nil {
			return err
		}
		l.up.Add(uint64(len(ahead)))
	}
	answers := make(chan error, 1)
	by.run(func() { answers <- l.answer() })
	there := l.pump(l.backend, l.client, &l.up)
	back := <-answers
	if cause := l.cause.Load(); cause != nil {
		return *cause
	}
	if there != nil && !errors.Is(there, net.ErrClosed) {
		return there
	}
	return back
}

// answer is pump for what the endpoint sends. It has a goroutine of its own, so it catches its panics itself.
func (l *link) answer() (err error) {
	if caught := panics.Try(func() { err = l.pump(l.client, l.backend, &l.down) }); caught != nil {
		l.close()
		return fmt.Errorf("panic: %w", caught)
	}
	return err
}

// deafError is about a side that takes nothing more.
type deafError struct{ error }

func (e deafError) Unwrap() error { return e.error }

// pump copies one way. A side that takes nothing more may have said something before, which gets to the other one, and then
// the end of it; when a side cannot be read, nothing said in the other direction is of use any more.
func (l *link) pump(to, from side, count *atomic.Uint64) error {
	err := move(to.Conn, from.Conn, func(n int) { count.Add(uint64(n)) })
	if err == nil {
		err = closeWrite(to.Conn)
	}
	if deaf := (deafError{}); err == nil || errors.As(err, &deaf) {
		return err
	}
	if tcp, ok := to.socket.(*net.TCPConn); ok && errors.Is(err, syscall.ECONNRESET) {
		// An end would say that this was all.
		_ = tcp.SetLinger(0)
	}
	l.close()
	return err
}

// end closes the connection for a reason. The first one counts.
func (l *link) end(cause error) {
	l.cause.CompareAndSwap(nil, &cause)
	l.close()
}

func (l *link) close() { _, _ = l.client.socket.Close(), l.backend.socket.Close() }

// move copies until the source has said all, and tells of each lot that has gone. Between two sockets without anything in
// between, the bytes do not come into this process.
func move(to, from net.Conn, note func(int)) error {
	destination, plain := to.(*net.TCPConn)
	if source, ok := from.(*net.TCPConn); ok && plain {
		if err := splice(destination, source, note); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	buffer := copying.Get()
	err := copyWith(buffer.Bytes(), to, from, note)
	buffer.Release()
	return err
}

// copyWith is move with a buffer.
func copyWith(buffer []byte, to, from net.Conn, note func(int)) error {
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return deafError{err}
			}
			note(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// copying are the buffers for what cannot be moved in the kernel. They hold two records of TLS.
var copying = pools.NewBuffers("l4app: copying", 32<<10)

// side is one end of a link.
type side struct {
	net.Conn
	// socket is what is closed to end the connection, whatever is spoken on it.
	socket io.Closer
}

func sideOf(conn net.Conn) side { return side{conn, socketOf(conn)} }

// clientOf returns the client's side of a connection, and what was read of it while caddy-l4 looked for a route and with
// the headers in front. It is the socket itself if nothing is in between, so that the bytes do not pass through this
// process.
func clientOf(cx *layer4.Connection) (side, []byte, error) {
	ahead := make([]byte, len(cx.MatchingBytes()))
	if _, err := io.ReadFull(cx, ahead); err != nil {
		return side{}, nil, err
	}
	if h, ok := cx.Conn.(*headed); ok {
		return sideOf(h.Conn), append(ahead, h.ahead...), nil
	}
	return sideOf(cx.Conn), ahead, nil
}

// socketOf returns what is below all layers.
func socketOf(conn net.Conn) io.Closer {
	for {
		switch layer := conn.(type) {
		case *layer4.Connection:
			conn = layer.Conn
		case *headed:
			conn = layer.Conn
		case interface{ NetConn() net.Conn }:
			conn = layer.NetConn()
		case interface{ Raw() net.Conn }:
			conn = layer.Raw()
		default:
			return conn
		}
	}
}

// closeWrite tells a side that the other one has said all. One that cannot be told is closed.
func closeWrite(conn net.Conn) error {
	switch conn := conn.(type) {
	case interface{ CloseWrite() error }:
		return conn.CloseWrite()
	case *layer4.Connection:
		return closeWrite(conn.Conn)
	case interface{ Raw() net.Conn }:
		return closeWrite(conn.Raw())
	}
	return conn.Close()
}
