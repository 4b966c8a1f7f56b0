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

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/loops"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// Passage forwards TLS connections, which another server has accepted, to endpoints. It does not terminate TLS.
type Passage struct {
	account *account
	policy  func() ir.StreamPolicy
	drain   func() time.Duration
	log     *zap.Logger
	// name is the name of the port, such as "tcp/443". It identifies the port's share of the budget.
	name     string
	budget   *budget.Budget
	outgoing *loops.Sockets
	guard    *reach.Guard
	// newest holds the conditions of the most recent connection.
	newest atomic.Pointer[conditions]
}

// Passage returns a Passage for the connections that another server accepts at an address. It calls policy for each new
// connection; open connections keep their policy. The connections appear in the metrics of that port. The account of
// the port is never released: connections can outlive the listener, and the next listener on the port continues its
// counters. Passage may be called on any goroutine.
func (p *Ports) Passage(at net.Addr, policy func() ir.StreamPolicy, log *zap.Logger) *Passage {
	name := at.Network() + "/" + portOf(at)
	return &Passage{
		account: p.accounts.use(name), policy: policy, drain: p.drainTime, log: log, name: name, budget: p.budget,
		outgoing: &p.tcp,
		guard:    p.tables.Endpoints.Guard(),
	}
}

// portOf returns the port of an address for the metrics. If the address has no TCP port, it returns the whole address.
func portOf(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok {
		return strconv.Itoa(tcp.Port)
	}
	return at.String()
}

// CountNoClientHello counts a connection whose client did not send its ClientHello in time, or sent one that is too
// long.
func (p *Passage) CountNoClientHello() { p.account.fail(noClientHello) }

// conditions are the policy and the watch shared by all connections that start between two changes of the policy.
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
		// Two connections that start at the same time may each get their own conditions, which is harmless.
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

// Take adds a connection to the passage. ahead holds the bytes that were already read from it.
func (p *Passage) Take(conn net.Conn, ahead []byte, to *balancer.Backend) *Passed {
	cx := layer4.WrapConnection(conn, ahead, p.log)
	ends, end := context.WithCancel(cx.Context)
	under := p.now()
	return &Passed{cx: cx, to: to, End: end, handler: &Handler{
		Policy: under.policy, account: p.account, watch: &under.watch, ends: ends, log: p.log, outgoing: p.outgoing,
		guard: p.guard,
		share: p.budget.Share(document.NamespaceOf(to.ID()), p.name),
	}}
}

// Pass forwards the connection to an endpoint of its backend, as Handler does. It returns after the connection has
// ended and is closed.
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
	// A panic ends only this connection.
	if p := panics.Try(func() { err = h.pass(c.cx, c.to) }); p != nil {
		h.account.fail(internalError)
		h.log.Error("forwarding a passthrough connection panicked", zap.Any("panic", p.Value),
			zap.ByteString("stack", p.Stack))
		return fmt.Errorf("panic: %w", p)
	}
	return err
}
