package l4app

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/balancer"
)

// Passage hands connections that no port of ours has accepted to endpoints.
type Passage struct {
	account account
	watch   watch
	log     *zap.Logger
}

// NewPassage returns one that ends connections on which nothing moves for ten minutes, and those whose endpoint is gone as
// drain says.
func NewPassage(drain func() time.Duration, log *zap.Logger) *Passage {
	p := &Passage{log: log}
	p.watch.idle, p.watch.drain, p.watch.account = idleTimeout, drain, &p.account
	return p
}

// Passed is one connection of a Passage.
type Passed struct {
	cx      *layer4.Connection
	handler *Handler
	// End ends the connection. It may be called at any time, and more than once.
	End context.CancelFunc
}

// Take makes a connection one of the passage. ahead is what has been read of it before.
func (p *Passage) Take(conn net.Conn, ahead []byte, backend *balancer.Backend) *Passed {
	cx := layer4.WrapConnection(conn, ahead, p.log)
	ends, end := context.WithCancel(cx.Context)
	return &Passed{cx: cx, End: end, handler: &Handler{
		Backend: backend.ID(), backend: backend, account: &p.account, watch: &p.watch, ends: ends, log: p.log,
	}}
}

// Pass hands the connection to an endpoint of its backend, as Handler does, and returns when it has ended. It is closed then.
func (c *Passed) Pass() (err error) {
	defer c.End()
	defer c.cx.Close()
	defer func() {
		// One connection must not take all others down with it.
		if r := recover(); r != nil {
			c.handler.log.Error("passing a connection through panicked", zap.Any("panic", r), zap.Stack("stack"))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return c.handler.Handle(c.cx, nil)
}
