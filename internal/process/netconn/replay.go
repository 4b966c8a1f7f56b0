package netconn

import (
	"net"

	"github.com/k8singress/k8singress/internal/model/pools"
)

// Replay returns a connection whose Read returns the bytes in ahead first, and then reads from conn. If ahead is empty,
// Replay returns conn itself, so that the kernel can still copy data from it. The caller must not change ahead
// afterwards.
func Replay(conn net.Conn, ahead []byte) net.Conn {
	if len(ahead) == 0 {
		return conn
	}
	return &replayed{Conn: conn, ahead: ahead}
}

// ReplayPooled is like Replay for the first n bytes of a buffer. The connection takes ownership of the buffer, and
// releases it when these bytes have been read.
func ReplayPooled(conn net.Conn, buffer *pools.Buffer, n int) net.Conn {
	if n == 0 {
		buffer.Release()
		return conn
	}
	return &replayed{Conn: conn, ahead: buffer.Bytes()[:n], buffer: buffer.Move()}
}

// replayed is a connection from which some bytes were already read. Read first returns these bytes.
type replayed struct {
	net.Conn
	// ahead are the bytes that Read has not returned yet. They need no lock, because Read is not called concurrently.
	ahead []byte
	// buffer contains ahead, if ahead comes from a pool.
	buffer pools.Buffer
}

func (r *replayed) Read(b []byte) (int, error) {
	if len(r.ahead) == 0 {
		return r.Conn.Read(b)
	}
	n := copy(b, r.ahead)
	if r.ahead = r.ahead[n:]; len(r.ahead) == 0 {
		r.ahead = nil
		r.buffer.Release()
	}
	return n, nil
}

// NetConn returns the wrapped connection.
func (r *replayed) NetConn() net.Conn { return r.Conn }

// CloseWrite closes the write side of the connection.
func (r *replayed) CloseWrite() error { return CloseWrite(r.Conn) }

// Strip removes the layers of Replay and NewProxied from conn. It returns the connection below them, and appends the
// bytes that they have already read from this connection to ahead. If the connection below is a TCP socket, the kernel
// can copy the bytes that follow. The header of a Proxied must have been read, and conn must not be read afterwards.
func Strip(conn net.Conn, ahead []byte) (net.Conn, []byte) {
	for {
		var layer *replayed
		switch conn := conn.(type) {
		case *replayed:
			layer = conn
		case *Proxied:
			layer = &conn.replayed
		default:
			return conn, ahead
		}
		if len(layer.ahead) > 0 {
			ahead = append(ahead, layer.ahead...)
			layer.ahead = nil
			layer.buffer.Release()
		}
		conn = layer.Conn
	}
}
