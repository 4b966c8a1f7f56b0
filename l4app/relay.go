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

	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

var (
	errIdle = errors.New("no data was transferred for the idle timeout")
	errGone = errors.New("the endpoint was removed, and the drain time has passed")
	// errPortClosed is the error for a connection that was closed because its port, or the host of a TLS passthrough
	// connection, was removed, or because the process is shutting down.
	errPortClosed = errors.New(
		"the port or the ssl-passthrough host was removed and worker-shutdown-timeout has passed, or the process is " +
			"shutting down")
)

// link consists of a client's connection and a connection to an endpoint. Bytes are copied between them in both
// directions.
type link struct {
	client, backend side
	endpoint        *balancer.Endpoint
	// up is the number of bytes sent to the endpoint, and down is the number of bytes sent to the client. To detect
	// idle connections, the watch of the port checks whether these numbers have changed.
	up, down atomic.Uint64
	// cause is the reason why this process has closed the link. It is nil if the link is open, or if the client or the
	// endpoint has closed it.
	cause atomic.Pointer[error]

	// The following fields are guarded by watch.mu.
	counted   [2]uint64
	moved     time.Time
	goneSince time.Time
}

// carry copies bytes in both directions until both the client and the endpoint have sent all of their data. When the
// first of them has sent all of its data, the other connection is closed for writing, so that the peer there sees EOF
// but can still send. ahead holds the bytes that were already read from the client.
func (l *link) carry(ahead []byte, by *workerPool) error {
	if len(ahead) > 0 {
		if _, err := l.backend.Write(ahead); err != nil {
			return err
		}
		l.up.Add(uint64(len(ahead)))
	}
	back := make(chan error, 1)
	by.run(func() { back <- l.copyBack() })
	clientErr := l.copyOneWay(l.backend, l.client, &l.up)
	endpointErr := <-back
	if cause := l.cause.Load(); cause != nil {
		return *cause
	}
	if clientErr != nil && !errors.Is(clientErr, net.ErrClosed) {
		return clientErr
	}
	return endpointErr
}

// copyBack copies bytes from the endpoint to the client. It runs on its own goroutine, so it must recover from panics
// itself.
func (l *link) copyBack() (err error) {
	if caught := panics.Try(func() { err = l.copyOneWay(l.client, l.backend, &l.down) }); caught != nil {
		l.close()
		return fmt.Errorf("panic: %w", caught)
	}
	return err
}

// writeClosedError wraps a write error on a connection. It means that the peer no longer accepts data.
type writeClosedError struct{ error }

func (e writeClosedError) Unwrap() error { return e.error }

// copyOneWay copies bytes from one side to the other until EOF, and then closes the destination for writing. After a
// write error, the other direction continues, because the peer that no longer reads may already have sent data. After a
// read error, copyOneWay closes both connections of the link, because the other direction is then useless.
func (l *link) copyOneWay(to, from side, count *atomic.Uint64) error {
	err := move(to.Conn, from.Conn, func(n int) { count.Add(uint64(n)) })
	if err == nil {
		err = closeWrite(to.Conn)
	}
	if closed := (writeClosedError{}); err == nil || errors.As(err, &closed) {
		return err
	}
	if tcp, ok := to.socket.(*net.TCPConn); ok && errors.Is(err, syscall.ECONNRESET) {
		// Also reset the destination: a normal close would tell its peer that all data was sent.
		_ = tcp.SetLinger(0)
	}
	l.close()
	return err
}

// The method end closes the link. It stores cause as the reason, unless an earlier call has already stored a reason.
func (l *link) end(cause error) {
	l.cause.CompareAndSwap(nil, &cause)
	l.close()
}

func (l *link) close() { _, _ = l.client.socket.Close(), l.backend.socket.Close() }

// move copies bytes from one connection to another until EOF. After each write, it calls note with the number of bytes
// written. If both connections are TCP sockets, the kernel moves the bytes without copying them into this process.
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

// copyWith is like the function move, but always copies the bytes into this process, through buffer.
func copyWith(buffer []byte, to, from net.Conn, note func(int)) error {
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return writeClosedError{err}
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

// copying is the pool of buffers for copying bytes that the kernel cannot move, for example because of TLS. Each buffer
// is large enough for two TLS records.
var copying = pools.NewBuffers("l4app: copying", 32<<10)

// side is one of the two connections of a link.
type side struct {
	net.Conn
	// socket is the underlying socket, below layers such as TLS. Closing it ends the connection.
	socket net.Conn
}

func sideOf(conn net.Conn) side { return side{conn, socketOf(conn)} }

// clientOf returns the client's side of a link. It also returns the bytes that were already read from the client, by a
// caddy-l4 matcher or together with a PROXY protocol header. If there is no layer such as TLS above the socket, the
// side is the socket itself, so that the kernel can move the bytes.
func clientOf(cx *layer4.Connection) (side, []byte, error) {
	ahead := make([]byte, len(cx.MatchingBytes()))
	if _, err := io.ReadFull(cx, ahead); err != nil {
		return side{}, nil, err
	}
	conn, ahead := netconn.Strip(cx.Conn, ahead)
	return sideOf(conn), ahead, nil
}

// socketOf returns the underlying socket of a connection that may have several layers, such as TLS.
func socketOf(conn net.Conn) net.Conn {
	for {
		below := netconn.Below(conn)
		if cx, ok := conn.(*layer4.Connection); ok {
			below = cx.Conn
		}
		if below == nil {
			return conn
		}
		conn = below
	}
}

// closeWrite closes a connection for writing. If the type of connection does not support this, closeWrite closes it
// completely.
func closeWrite(conn net.Conn) error {
	if cx, ok := conn.(*layer4.Connection); ok {
		return closeWrite(cx.Conn)
	}
	if err := netconn.CloseWrite(conn); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return conn.Close()
}
