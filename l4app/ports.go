package l4app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/accesslog"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/loops"
	"github.com/k8singress/k8singress/internal/process/netaddr"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// drainTime is the default drain time: how long connections may continue after their port was closed. It is
// ingress-nginx's default for worker-shutdown-timeout.
const drainTime = 240 * time.Second

// RejectedError wraps the error of a port whose handlers could not be provisioned.
type RejectedError struct{ error }

// Unwrap returns the wrapped error.
func (e RejectedError) Unwrap() error { return e.error }

// Refusal describes a port that could not be opened or had to be closed, for example because another server uses its
// address.
type Refusal struct {
	// Name is the name of the port in the configuration, such as "tcp/5432".
	Name string
	// Origin is the object that defines the port.
	Origin ir.Ref
	Err    error
}

// Ports is the set of open TCP and UDP ports. If one port is opened, changed or closed, the other ports are not
// affected. The methods must be called from a single goroutine, unless their comment says otherwise. Connections are
// served on other goroutines.
type Ports struct {
	log      *zap.Logger
	tables   Tables
	accounts *accounts
	workers  workerPool
	budget   *budget.Budget
	// tcp and udp hold the local addresses of this process's connections to endpoints, for each protocol. They are used
	// to detect loops.
	tcp, udp loops.Sockets
	// drain is how long connections may continue after their port was closed or their endpoint was removed, in
	// nanoseconds.
	drain atomic.Int64

	// mu guards open, leaving and left. left is true after Refuse was called: no more ports may then be opened.
	mu   sync.Mutex
	open map[string]*port
	// leaving holds the closed ports that still have open connections, by name.
	leaving map[string]*port
	left    bool
	// outlasts is true when the process is ending. Close then does nothing, because Drain closes the ports later.
	outlasts atomic.Bool
	refused  map[string]*document.Port
	// taken holds the listen addresses of the servers in the Caddy configuration. chains are the definitions of the
	// stream chains in it, by name.
	taken  []netaddr.Taken
	chains map[string]json.RawMessage
	// guests are the connections of handlers in the user's own layer4 app. They outlive the Caddy configuration of
	// their handler, as connections of ports outlive a change of their port.
	guests *connections
	// running tracks the goroutines that wait until the last connection of a closed port, or of a replaced handler
	// chain, has ended.
	running panics.Group
	// closing is a channel that is closed to end all remaining connections immediately.
	closing chan struct{}
}

// New returns a Ports without open ports.
func New(log *zap.Logger, tables Tables) *Ports {
	shared := cmp.Or(tables.Budget, budget.Streams.Budget())
	if tables.AccessLog == nil {
		tables.AccessLog = func() *accesslog.Streams { return nil }
	}
	p := &Ports{
		log: log.Named("l4"), tables: tables, accounts: &accounts{budget: shared, all: map[string]*account{}},
		budget: shared,
		open:   map[string]*port{}, leaving: map[string]*port{}, refused: map[string]*document.Port{},
		guests:  newConnections(),
		closing: make(chan struct{}),
	}
	p.SetDrain(0)
	return p
}

// SetDrain sets how long connections may continue after their port was closed or their endpoint was removed. Zero means
// the default of four minutes.
func (p *Ports) SetDrain(d time.Duration) { p.drain.Store(int64(cmp.Or(d, drainTime))) }

func (p *Ports) drainTime() time.Duration { return time.Duration(p.drain.Load()) }

// Collector returns a collector for the metrics of all ports.
func (p *Ports) Collector() prometheus.Collector { return p.accounts }

// Adopt must be called for each new Caddy configuration, after all of its apps were provisioned. chains are the
// definitions of the stream chains in it, by name: ports with stream chains provision their handlers again, for new
// connections. If that fails, or if a server of the configuration uses the address of a port, Adopt closes the port and
// returns it; the port's open connections are drained. Adopt does not open ports. Call Retry afterwards to open the
// ports that could not be opened because of the previous Caddy configuration.
func (p *Ports) Adopt(ctx caddy.Context, chains map[string]json.RawMessage) []Refusal {
	p.taken, p.chains = takenBy(ctx), chains
	var refusals []Refusal
	for _, name := range p.Names() {
		port := p.find(name)
		if port == nil {
			continue
		}
		if err := p.check(port.addresses); err != nil {
			p.remove(name)
			refusals = p.refuse(name, port.wanted, err, refusals)
		} else if port.chain.Load().chained {
			refusals = p.try(ctx, name, port.wanted, refusals)
		}
	}
	for name, port := range p.leavingPorts() {
		if p.check(port.addresses) != nil {
			p.clear(name)
		}
	}
	return refusals
}

// Update applies changes to the ports. The keys of changes are the names of the changed ports; a port whose value is
// nil is closed. The Caddy modules of the ports are provisioned with ctx, which must stay valid as long as the ports
// are open.
//
// If the addresses of a changed port stay the same, its listeners stay open: new connections use the new handlers, and
// open connections keep the old handlers. The connections of a closed port may continue for the drain time. Update
// returns the ports that could not be opened because of an error from Caddy or the operating system. If such a port was
// open before, it is closed. All other changes take effect.
func (p *Ports) Update(ctx caddy.Context, changes map[string]*document.Port) []Refusal {
	names := slices.Sorted(maps.Keys(changes))
	for _, name := range names {
		delete(p.refused, name)
		if changes[name] == nil {
			p.remove(name)
		}
	}
	var refusals []Refusal
	for _, name := range names {
		if wanted := changes[name]; wanted != nil {
			refusals = p.try(ctx, name, wanted, refusals)
		}
	}
	return refusals
}

// Retry tries again to open the ports that Update or Adopt has returned as refused. It returns the ports that still
// cannot be opened.
func (p *Ports) Retry(ctx caddy.Context) []Refusal {
	again := p.refused
	p.refused = map[string]*document.Port{}
	return p.Update(ctx, again)
}

// Names returns the sorted names of the open ports.
func (p *Ports) Names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.open))
}

// Addresses returns the listen addresses of the open ports.
func (p *Ports) Addresses() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(p.open)) {
		all = append(all, p.open[name].addresses...)
	}
	return all
}

// Close closes all ports and their connections, and waits until they have ended. After Outlast was called, Close does
// nothing. p must not be used afterwards.
func (p *Ports) Close() {
	if !p.outlasts.Load() {
		p.end()
	}
}

func (p *Ports) try(ctx caddy.Context, name string, wanted *document.Port, refusals []Refusal) []Refusal {
	if err := p.set(ctx, name, wanted); err != nil {
		return p.refuse(name, wanted, err, refusals)
	}
	return refusals
}

func (p *Ports) refuse(name string, wanted *document.Port, err error, refusals []Refusal) []Refusal {
	p.refused[name] = wanted
	return append(refusals, Refusal{Name: name, Origin: wanted.Origin, Err: err})
}

func (p *Ports) set(ctx caddy.Context, name string, wanted *document.Port) error {
	of := &scope{
		tables: &p.tables, account: p.accounts.use(name), log: p.log.With(zap.String("port", name)),
		workers: &p.workers, drain: p.drainTime,
		share: p.budget.Share(wanted.Namespace(), name), outgoing: p.outgoing(name), chains: p.chains,
	}
	var c *chain
	var err error
	// Recover from panics of Caddy modules, so that a panic affects only this port.
	if caught := panics.Try(func() { c, err = newChain(ctx, wanted.Server, of) }); caught != nil {
		err = fmt.Errorf("provisioning it panicked: %w", caught)
	}
	if err != nil {
		p.accounts.release(name)
		p.remove(name)
		return RejectedError{err}
	}
	release, cancel := sync.OnceFunc(func() { p.accounts.release(name) }), c.cancel
	c.cancel = func() { cancel(); release() }
	if err := p.check(c.addresses); err != nil {
		p.remove(name)
		c.cancel()
		return err
	}
	if p.swap(name, wanted, c) {
		return nil
	}
	p.remove(name)
	p.clear(name)
	opened, err := openPort(ctx, c, of)
	if err != nil {
		c.cancel()
		return err
	}
	opened.wanted = wanted
	if p.add(name, opened) {
		of.log.Info("the port is open", zap.Strings("addresses", c.addresses), zap.Stringer("of", wanted.Origin))
	}
	return nil
}

// outgoing returns the local addresses of this process's connections to endpoints, for the protocol of a port. name is
// the name of the port, such as "tcp/5432".
func (p *Ports) outgoing(name string) *loops.Sockets {
	if strings.HasPrefix(name, string(ir.UDP)+"/") {
		return &p.udp
	}
	return &p.tcp
}

// swap replaces the handlers of an open port with the handler chain c. It returns false if the port is not open, or if
// it listens on other addresses than c requires.
func (p *Ports) swap(name string, wanted *document.Port, c *chain) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	existing := p.open[name]
	if existing == nil || !slices.Equal(existing.addresses, c.addresses) {
		return false
	}
	existing.wanted = wanted
	p.retire(existing, existing.chain.Swap(c))
	return true
}

func (p *Ports) find(name string) *port {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[name]
}

// add adds a port that has just been opened. If no more ports may be opened, it closes the port and returns false.
func (p *Ports) add(name string, opened *port) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		opened.close()
		opened.free()
		opened.chain.Load().cancel()
		return false
	}
	p.open[name], opened.name = opened, name
	if before := p.leaving[name]; before != nil {
		delete(p.leaving, name)
		before.successor, opened.waiting = opened, before.waiting
		close(before.back)
	}
	return true
}

// remove closes the port with the given name if it is open. Its connections are drained.
func (p *Ports) remove(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(name)
}

// The method drop is like remove, but the caller must hold p.mu.
func (p *Ports) drop(name string) {
	gone := p.open[name]
	if gone == nil {
		return
	}
	delete(p.open, name)
	gone.close()
	p.log.Info("the port is closed; its open connections are drained", zap.String("port", name))
	p.retire(gone, gone.chain.Load())
	p.leaving[name] = gone
	p.running.Go("l4app/port", gone.serving.Wait)
}

// leavingPorts returns the closed ports that still have open connections.
func (p *Ports) leavingPorts() map[string]*port {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.leaving)
}

// If the port with the given name was closed but still has connections, the method clear makes the addresses of the
// port available to other listeners.
func (p *Ports) clear(name string) {
	p.mu.Lock()
	gone := p.leaving[name]
	p.mu.Unlock()
	if gone != nil {
		gone.free()
	}
}

// chainEnded must be called when the last connection of a replaced or closed handler chain has ended. The parameter is
// the port to which the chain belonged, or a later port with the same name. If the port is closed, and none of its
// handler chains has open connections any more, the port is removed from p.leaving.
func (p *Ports) chainEnded(of *port) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for of.successor != nil {
		of = of.successor
	}
	if of.waiting--; of.waiting == 0 && p.leaving[of.name] == of {
		delete(p.leaving, of.name)
	}
}

// retire makes a handler chain reject new connections. When its last connection has ended, the chain's context is
// cancelled. If the port is closed, the remaining connections are closed after the drain time, unless the port is
// opened again before. When p.closing is closed, they are closed at once.
func (p *Ports) retire(of *port, c *chain) {
	ended := c.connections.refuse()
	of.waiting++
	p.running.Go("l4app/chain", func() {
		defer c.cancel()
		defer p.chainEnded(of)
		var late <-chan time.Time
		of := of
		gone, back, closing := of.gone, (<-chan struct{})(nil), p.closing
		for {
			select {
			case <-ended:
				return
			case <-gone:
				gone, back = nil, of.back
				if !p.outlasts.Load() {
					late = time.After(p.drainTime())
				}
			case <-back:
				of = of.successor
				gone, back, late = of.gone, nil, nil
			case <-late:
				c.close()
			case <-closing:
				closing = nil
				c.close()
			}
		}
	})
}

// Outlast must be called when the process is ending. The ports then stay open when Caddy stops its apps: Close, which
// Caddy calls, does nothing, and Drain closes the ports later. Outlast is safe for concurrent use.
func (p *Ports) Outlast() { p.outlasts.Store(true) }

// Refuse closes all ports, prevents new ports from being opened, and rejects new connections of handlers in the user's
// own layer4 app. Open connections continue. It may be called more than once, and is safe for concurrent use.
func (p *Ports) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.left {
		p.running.Go("l4app/guests", p.drainGuests)
	}
	p.left = true
	for name := range p.open {
		p.drop(name)
	}
}

// Drain calls Refuse, and then waits until all connections have ended. If ctx ends before, it closes the remaining
// connections. Drain must be called only once, after Outlast. p must not be used afterwards.
func (p *Ports) Drain(ctx context.Context) {
	p.Refuse()
	ended := make(chan struct{})
	panics.Go("l4app/drain", func() {
		p.running.Wait()
		close(ended)
	})
	select {
	case <-ended:
	case <-ctx.Done():
	}
	close(p.closing)
	<-ended
	p.workers.close()
}

// The method end closes all ports and their connections immediately.
func (p *Ports) end() {
	p.Refuse()
	close(p.closing)
	p.running.Wait()
	p.workers.close()
}
