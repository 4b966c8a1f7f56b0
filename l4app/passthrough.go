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

// Passage forwards TLS connections to endpoints without terminating TLS (TLS passthrough). The HTTPS server has already
// accepted the connections and read the ClientHello.
type Passage struct {
	account *account
	policy  func() ir.StreamPolicy
	drain   func() time.Duration
	log     *zap.Logger
	// name is the name of the port, such as "tcp/443". In the budget of file descriptors, the connections count as
	// connections of this port.
	name     string
	budget   *budget.Budget
	outgoing *loops.Sockets
	guard    *reach.Guard
	// newest holds the policy of the latest connection, together with the watch that closes idle connections according
	// to this policy.
	newest atomic.Pointer[conditions]
}

// Passage returns a Passage for connections that another server accepts on the address at. For each new connection, the
// Passage calls policy to get the timeouts and limits; open connections keep theirs. The connections are counted in the
// metrics of the port with the same port number. These metrics are never deleted, because connections may still be open
// when the listener is closed, and the next listener on the port must continue the counters. A Passage is safe for
// concurrent use.
func (p *Ports) Passage(at net.Addr, policy func() ir.StreamPolicy, log *zap.Logger) *Passage {
	name := at.Network() + "/" + portOf(at)
	return &Passage{
		account: p.accounts.use(name), policy: policy, drain: p.drainTime, log: log, name: name, budget: p.budget,
		outgoing: &p.tcp,
		guard:    p.tables.Endpoints.Guard(),
	}
}

// portOf returns the port number of a TCP address, for metrics. For any other type of address, it returns the whole
// address.
func portOf(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok {
		return strconv.Itoa(tcp.Port)
	}
	return at.String()
}

// CountNoClientHello counts a connection whose client did not send a complete ClientHello in time, or sent a
// ClientHello that is too long.
func (p *Passage) CountNoClientHello() { p.account.fail(noClientHello) }

// conditions holds a policy, and the watch that closes idle connections according to this policy. All connections share
// the same conditions until the policy changes.
type conditions struct {
	policy ir.StreamPolicy
	watch  watch
}

// p.now() returns the conditions for a new connection: the current policy and the watch for connections with this
// policy.
func (p *Passage) now() *conditions {
	policy, newest := p.policy(), p.newest.Load()
	if newest == nil || newest.policy != policy {
		newest = &conditions{policy: policy, watch: watch{
			idle: cmp.Or(policy.IdleTimeout, idleTimeout), drain: p.drain, account: p.account,
		}}
		// If several connections start at the same time after a change of the policy, each of them may create its own
		// conditions. This is harmless.
		p.newest.Store(newest)
	}
	return newest
}

// Passed is a connection that is forwarded by a Passage.
type Passed struct {
	cx      *layer4.Connection
	handler *Handler
	to      *balancer.Backend
	// End ends the connection. It may be called at any time, and more than once.
	End context.CancelFunc
}

// Take prepares the forwarding of conn to an endpoint of a backend (the parameter to). The caller must then call the
// method Pass of the result. ahead holds the bytes that were already read from conn.
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

// Pass forwards the connection to an endpoint of its backend. It returns after the connection has ended, and closes it.
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
	// Recover from a panic, so that it ends only this connection.
	if p := panics.Try(func() { err = h.pass(c.cx, c.to) }); p != nil {
		h.account.fail(internalError)
		h.log.Error("forwarding a passthrough connection panicked", zap.Any("panic", p.Value),
			zap.ByteString("stack", p.Stack))
		return fmt.Errorf("panic: %w", p)
	}
	return err
}
