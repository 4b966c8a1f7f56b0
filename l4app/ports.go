package l4app

import (
	"cmp"
	"context"
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

// drainTime is how long the connections of a closed port may last by default: ingress-nginx's worker-shutdown-timeout.
const drainTime = 240 * time.Second

// Refusal is a port that is not served, with the error.
type Refusal struct {
	// Name is the key of the port in the document, such as "tcp/5432".
	Name string
	// Origin is the object that defines the port.
	Origin ir.Ref
	Err    error
}

// Ports is the set of open TCP and UDP ports. Opening, changing or closing a port does not affect the others. Only one
// goroutine may call the methods, except where a method says otherwise. Connections are served on other goroutines.
type Ports struct {
	log      *zap.Logger
	tables   Tables
	accounts *accounts
	workers  workerPool
	budget   *budget.Budget
	// tcp and udp hold the addresses of our sockets to endpoints.
	tcp, udp loops.Sockets
	// drain is the drain time in nanoseconds.
	drain atomic.Int64

	// mu guards open, leaving and left. left means that no port may be opened any more.
	mu   sync.Mutex
	open map[string]*port
	// leaving are closed ports whose last connections have not ended.
	leaving map[string]*port
	left    bool
	// outlasts means that Close does nothing, because Drain ends the ports later.
	outlasts atomic.Bool
	refused  map[string]*document.Port
	// taken are the listen addresses of the Caddy configuration.
	taken []netaddr.Taken
	// running tracks the closed ports and the replaced chains that have not ended.
	running panics.Group
	// closing is closed when all connections must end now.
	closing chan struct{}
}

// New returns an empty set of ports.
func New(log *zap.Logger, tables Tables) *Ports {
	shared := cmp.Or(tables.Budget, budget.Streams.Budget())
	if tables.AccessLog == nil {
		tables.AccessLog = func() *accesslog.Streams { return nil }
	}
	p := &Ports{
		log: log.Named("l4"), tables: tables, accounts: &accounts{budget: shared, all: map[string]*account{}},
		budget: shared,
		open:   map[string]*port{}, leaving: map[string]*port{}, refused: map[string]*document.Port{},
		closing: make(chan struct{}),
	}
	p.SetDrain(0)
	return p
}

// SetDrain sets how long connections may last after their port or endpoint is gone. Zero means four minutes.
func (p *Ports) SetDrain(d time.Duration) { p.drain.Store(int64(cmp.Or(d, drainTime))) }

func (p *Ports) drainTime() time.Duration { return time.Duration(p.drain.Load()) }

// Collector returns the metrics of all ports.
func (p *Ports) Collector() prometheus.Collector { return p.accounts }

// Adopt makes room for the servers of a new Caddy configuration, whose apps must all be provisioned. It closes and
// returns each port whose address one of these servers uses; open connections of the port are drained. Adopt opens no
// ports. Retry opens the ports that were refused because of the previous configuration.
func (p *Ports) Adopt(ctx caddy.Context) []Refusal {
	p.taken = takenBy(ctx)
	var refusals []Refusal
	for _, name := range p.Names() {
		port := p.find(name)
		if port == nil {
			continue
		}
		if err := p.check(port.addresses); err != nil {
			p.remove(name)
			refusals = p.refuse(name, port.wanted, err, refusals)
		}
	}
	for name, port := range p.leavingPorts() {
		if p.check(port.addresses) != nil {
			p.clear(name)
		}
	}
	return refusals
}

// Update opens and changes the ports in changes, by name, and closes the ports whose value is nil. It provisions their
// modules under ctx, which must outlive them.
//
// A changed port keeps its listeners if its addresses stay the same: new connections get the new handlers, and open
// connections keep the old ones. The connections of a closed port may last for the drain time. Update returns the ports
// that Caddy or the operating system rejects; such a port is closed if it was open. All other changes are in effect.
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

// Retry tries to open the refused ports again. It returns the ports that are still refused.
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

// Addresses returns the addresses of the open ports.
func (p *Ports) Addresses() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(p.open)) {
		all = append(all, p.open[name].addresses...)
	}
	return all
}

// Close closes all ports and their connections, and waits until they have ended. The set must not be used afterwards.
// After Outlast, Close does nothing.
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
		share: p.budget.Share(wanted.Namespace(), name), outgoing: p.outgoing(name),
	}
	var c *chain
	var err error
	// A module that panics affects only its own port.
	if caught := panics.Try(func() { c, err = newChain(ctx, wanted.Server, of) }); caught != nil {
		err = fmt.Errorf("provisioning it panicked: %w", caught)
	}
	if err != nil {
		p.accounts.release(name)
		p.remove(name)
		return err
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

// outgoing returns the sockets to endpoints for the protocol of the port.
func (p *Ports) outgoing(name string) *loops.Sockets {
	if strings.HasPrefix(name, string(ir.UDP)+"/") {
		return &p.udp
	}
	return &p.tcp
}

// swap replaces the handlers of an open port. It returns false if the port is not open at the addresses of c.
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

// add adds an opened port. If no port may be opened any more, it closes the port and returns false.
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

// remove closes a port if it is open. Its connections are drained.
func (p *Ports) remove(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(name)
}

// drop does the same as remove. The caller holds the mutex.
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

// leavingPorts returns the ports that are leaving.
func (p *Ports) leavingPorts() map[string]*port {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.leaving)
}

// clear releases the addresses of a leaving port, if there is one with this name.
func (p *Ports) clear(name string) {
	p.mu.Lock()
	gone := p.leaving[name]
	p.mu.Unlock()
	if gone != nil {
		gone.free()
	}
}

// chainEnded records that a retired chain of a port, or of one of its predecessors, has ended.
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

// retire cancels a chain after the last of its connections has ended. It closes the remaining connections when the port
// has been gone for the drain time, or when everything is closed. If the port is opened again before that, the
// connections may continue.
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

// Outlast announces that the process is ending: Close, which Caddy calls when it stops its apps, then does nothing, and
// Drain ends the connections. Outlast may be called on any goroutine.
func (p *Ports) Outlast() { p.outlasts.Store(true) }

// Refuse closes all ports and prevents new ones from being opened. Open connections continue. It may be called on any
// goroutine, and more than once.
func (p *Ports) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	for name := range p.open {
		p.drop(name)
	}
}

// Drain calls Refuse and waits until all connections have ended. When ctx ends, it closes the remaining connections.
// The set must not be used afterwards. Drain is called once, after Outlast.
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

// end closes all ports and connections without draining.
func (p *Ports) end() {
	p.Refuse()
	close(p.closing)
	p.running.Wait()
	p.workers.close()
}
