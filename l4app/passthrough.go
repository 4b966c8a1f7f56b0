package l4app

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/loops"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/reach"
)

// Passage hands connections that no port of ours has accepted to endpoints.
type Passage struct {
	account *account
	policy  func() ir.StreamPolicy
	drain   func() time.Duration
	log     *zap.Logger
	// name is that of the port, for its part of the budget.
	name     string
	budget   *budget.Budget
	outgoing *loops.Sockets
	guard    *reach.Guard
	// newest is what the last connection was taken under.
	newest atomic.Pointer[conditions]
}

// Passage returns one for the connections that somebody else accepts at an address. It asks for the policy with each new one;
// those that are open go on as they began. They are counted as those of a port. The account stays, also when nobody listens
// there any more: its connections last longer, and the next one that listens there goes on counting. It may be called on any
// goroutine.
func (p *Ports) Passage(at net.Addr, policy func() ir.StreamPolicy, log *zap.Logger) *Passage {
	name := at.Network() + "/" + portOf(at)
	return &Passage{
		account: p.accounts.use(name), policy: policy, drain: p.drainTime, log: log, name: name, budget: p.budget, outgoing: &p.tcp,
		guard: p.tables.Endpoints.Guard(),
	}
}

// portOf is what is counted of an address: its port, if it has one.
func portOf(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok {
		return strconv.Itoa(tcp.Port)
	}
	return at.String()
}

// Unheard counts a connection whose client did not say in time, or in few enough words, which host it wants.
func (p *Passage) Unheard() { p.account.fail(unheard) }

// conditions are what connections are taken under that come between two changes of the policy.
type conditions struct {
	policy ir.StreamPolicy
	watch  watch
}

// now returns the conditions for a new connection.
func (p *Passage) now() *conditions {
	policy, newest := p.policy(), p.newest.Load()
	if newest == nil || newest.policy != policy {
		newest = &conditions{policy: policy, watch: watch{
			idle: cmp.Or(policy.IdleTimeout, idleTimeout), drain: p.drain, account: p.account,
		}}
		// Of two that come at once, each may have its own.
		p.newest.Store(newest)
	}
	return newest
}

// Passed is one connection of a Passage.
type Passed struct {
	cx      *layer4.Connection
	handler *Handler
	to      *balancer.Backend
	// End ends the connection. It may be called at any time, and more than once.
	End context.CancelFunc
}

// Take makes a connection one of the passage. ahead is what has been read of it before.
func (p *Passage) Take(conn net.Conn, ahead []byte, to *balancer.Backend) *Passed {
	cx := layer4.WrapConnection(conn, ahead, p.log)
	ends, end := context.WithCancel(cx.Context)
	under := p.now()
	return &Passed{cx: cx, to: to, End: end, handler: &Handler{
		Policy: under.policy, account: p.account, watch: &under.watch, ends: ends, log: p.log, outgoing: p.outgoing, guard: p.guard,
		share: p.budget.Share(document.NamespaceOf(to.ID()), p.name),
	}}
}

// Pass hands the connection to an endpoint of its backend, as Handler does, and returns when it has ended. It is closed then.
func (c *Passed) Pass() (err error) {
	defer c.End()
	defer c.cx.Close()
	h := c.handler
	h.account.enter(0)
	defer h.account.leave()
	if !h.account.admit(h.log, c.cx.Conn, h.share, h.outgoing) {
		return nil
	}
	defer h.share.Give(perConnection)
	// A panic ends this connection alone.
	if p := panics.Try(func() { err = h.pass(c.cx, c.to) }); p != nil {
		h.account.fail(broken)
		h.log.Error("passing a connection through panicked", zap.Any("panic", p.Value), zap.ByteString("stack", p.Stack))
		return fmt.Errorf("panic: %w", p)
	}
	return err
}
