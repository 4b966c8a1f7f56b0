package l4app

import (
	"fmt"
	"net"

	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/balancer"
)

// Pass hands a connection that no port of ours has accepted to an endpoint of a backend, as Handler does, and returns when it
// has ended. ahead is what has been read of it before. The connection is closed then.
func Pass(conn net.Conn, ahead []byte, backend *balancer.Backend, log *zap.Logger) (err error) {
	defer conn.Close()
	defer func() {
		// One connection must not take all others down with it.
		if r := recover(); r != nil {
			log.Error("passing a connection through panicked", zap.Any("panic", r), zap.Stack("stack"))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	h := &Handler{Backend: backend.ID(), backend: backend, log: log}
	cx := layer4.WrapConnection(overTCP{conn}.bare(), ahead, log)
	h.withoutPort(cx.Context)
	return h.Handle(cx, nil)
}

// overTCP is a connection that did not come over TCP, but goes on over it.
type overTCP struct{ net.Conn }

// bare returns the connection itself if it came over TCP.
func (c overTCP) bare() net.Conn {
	if _, ok := c.Conn.LocalAddr().(*net.TCPAddr); ok {
		return c.Conn
	}
	return c
}

// LocalAddr is one that nobody has.
func (overTCP) LocalAddr() net.Addr { return &net.TCPAddr{} }

// CloseWrite is closeWrite.
func (c overTCP) CloseWrite() error { return closeWrite(c.Conn) }
