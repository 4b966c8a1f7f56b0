package l4app

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/mholt/caddy-l4/layer4"
	"github.com/pires/go-proxyproto"
)

const (
	// idleTimeout is ingress-nginx's proxy-stream-timeout.
	idleTimeout = 600 * time.Second
	// idleCheck is how often it is looked whether bytes moved; a connection lasts that much longer at most.
	idleCheck = idleTimeout / 8
)

// relay copies both ways between a client and its backend. When one side has said all, the other one is told so and may
// go on. A connection on which nothing moves for idleTimeout is closed.
func relay(cx *layer4.Connection, backend *net.TCPConn) error {
	if err := flush(cx, backend); err != nil {
		return err
	}
	r := &relaying{tick: idleCheck, longest: idleTimeout}
	r.moved()
	done := make(chan error, 1)
	go func() {
		err := r.pump(writable(cx), backend)
		if err != nil {
			// Nothing can reach the client any more, so what it says is of no use.
			_, _ = cx.Close(), backend.Close()
		}
		done <- err
	}()
	err := r.pump(backend, readable(cx))
	if err != nil {
		_, _ = cx.Close(), backend.Close()
	}
	return errors.Join(err, <-done)
}

// flush passes on what was read while caddy-l4 looked for a route.
func flush(cx *layer4.Connection, to io.Writer) error {
	_, err := io.CopyN(to, cx, int64(len(cx.MatchingBytes())))
	return err
}

// readable is what the bytes of the client are read from: the socket itself if nothing is in between, so that they do not
// pass through this process.
func readable(cx *layer4.Connection) net.Conn {
	if tcp, ok := cx.Conn.(*net.TCPConn); ok {
		return tcp
	}
	return cx
}

// writable is what the bytes for the client are written to. A PROXY protocol header came before what the client sent, and
// is no concern of what it gets.
func writable(cx *layer4.Connection) net.Conn {
	var conn net.Conn = cx
	for {
		switch layer := conn.(type) {
		case *layer4.Connection:
			conn = layer.Conn
		case *proxyproto.Conn:
			conn = layer.Raw()
		case *net.TCPConn:
			return layer
		case interface{ CloseWrite() error }:
			return conn
		default:
			return cx
		}
	}
}

// relaying is what both directions of a connection know of each other.
type relaying struct {
	tick    time.Duration
	longest time.Duration
	// last is when bytes moved in either direction, in nanoseconds.
	last atomic.Int64
}

func (r *relaying) moved() { r.last.Store(time.Now().UnixNano()) }

func (r *relaying) idle() time.Duration { return time.Since(time.Unix(0, r.last.Load())) }

var errIdle = errors.New("nothing was said for too long")

// pump copies until the source has said all. It looks up from time to time to see whether the connection is idle: bytes
// may move in the kernel, without anybody here to count them.
func (r *relaying) pump(to, from net.Conn) error {
	for {
		now := time.Now()
		give := now.Add(r.tick + r.longest)
		if err := errors.Join(from.SetReadDeadline(now.Add(r.tick)), to.SetWriteDeadline(give)); err != nil {
			return err
		}
		n, err := io.Copy(to, from)
		if n > 0 {
			r.moved()
		}
		switch {
		case err == nil:
			return closeWrite(to)
		case !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Before(give):
			return err
		case n == 0 && r.idle() >= r.longest:
			return errIdle
		}
	}
}

// closeWrite tells a side that the other one has said all. One that cannot be told is closed.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}
