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

	"github.com/k8singress/k8singress/internal/accesslog"
	"github.com/k8singress/k8singress/internal/budget"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/loops"
	"github.com/k8singress/k8singress/internal/netaddr"
	"github.com/k8singress/k8singress/internal/panics"
)

// drainTime is how long the connections of a port that is gone may last: ingress-nginx's worker-shutdown-timeout.
const drainTime = 240 * time.Second

// Refusal is a port that is not served, and why.
type Refusal struct {
	// Name is the key of the port in the document, such as "tcp/5432".
	Name string
	// Origin is the object that the port comes from.
	Origin ir.Ref
	Err    error
}

// Ports are the TCP and UDP ports that are open. Opening, changing or closing one touches no other. One goroutine may
// call the methods, but for those that say otherwise; connections are served on their own.
type Ports struct {
	log      *zap.Logger
	tables   Tables
	accounts *accounts
	workers  workerPool
	budget   *budget.Budget
	// tcp and udp are the sockets towards endpoints.
	tcp, udp loops.Sockets
	// drain is in nanoseconds.
	drain atomic.Int64

	// mu is for open, and for left, which says that nothing is to be opened any more.
	mu   sync.Mutex
	open map[string]*port
	// leaving are ports that are gone, but for their last connections.
	leaving map[string]*port
	left    bool
	// outlasts says that Close leaves everything to Leave.
	outlasts atomic.Bool
	refused  map[string]*document.Port
	// taken are the addresses of the Caddy configuration.
	taken []netaddr.Taken
	// running is what has not ended yet of ports and chains that were let go.
	running panics.Group
	// closing is closed when what is open has to end now.
	closing chan struct{}
}

// New returns an empty set of ports.
func New(log *zap.Logger, tables Tables) *Ports {
	shared := cmp.Or(tables.Budget, budget.Streams.Budget())
	if tables.AccessLog == nil {
		tables.AccessLog = func() *accesslog.Streams { return nil }
	}
	p := &Ports{
		log: log.Named("l4"), tables: tables, accounts: &accounts{budget: shared, all: map[string]*account{}}, budget: shared,
		open: map[string]*port{}, leaving: map[string]*port{}, refused: map[string]*document.Port{}, closing: make(chan struct{}),
	}
	p.SetDrain(0)
	return p
}

// SetDrain says how long connections may last whose port or endpoint is gone; zero is four minutes.
func (p *Ports) SetDrain(d time.Duration) { p.drain.Store(int64(cmp.Or(d, drainTime))) }

func (p *Ports) drainTime() time.Duration { return time.Duration(p.drain.Load()) }

// Collector returns the metrics of all ports.
func (p *Ports) Collector() prometheus.Collector { return p.accounts }

// Adopt makes room for the servers of another Caddy configuration, whose apps are all provisioned: a port that one of them
// listens on is closed and returned. Its connections go on as those of a port that is gone. Nothing is opened; Retry
// opens what was refused because of the configuration before.
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
	for name, port := range p.going() {
		if p.check(port.addresses) != nil {
			p.clear(name)
		}
	}
	return refusals
}

// Update opens and changes ports, by name, and closes those that are nil. Their modules are provisioned under ctx, which
// has to outlive them.
//
// A changed port keeps its listeners if its addresses stay: new connections get the new handlers, open ones keep theirs.
// The connections of a port that is gone may last another four minutes. A port that Caddy or the system refuses is
// returned, and is closed if it was open; all others are in effect.
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

// Retry tries the ports again that were refused, and returns those that are still.
func (p *Ports) Retry(ctx caddy.Context) []Refusal {
	again := p.refused
	p.refused = map[string]*document.Port{}
	return p.Update(ctx, again)
}

// Names returns the names of the ports that are open, sorted.
func (p *Ports) Names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.open))
}

// Addresses returns the addresses of the ports that are open.
func (p *Ports) Addresses() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(p.open)) {
		all = append(all, p.open[name].addresses...)
	}
	return all
}

// Close closes all ports and their connections, and waits until they have ended. The set cannot be used after it.
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
		tables: &p.tables, account: p.accounts.use(name), log: p.log.With(zap.String("port", name)), workers: &p.workers, drain: p.drainTime,
		share: p.budget.Share(wanted.Namespace(), name), outgoing: p.outgoing(name),
	}
	var c *chain
	var err error
	// A module that panics ends its own port only.
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

// outgoing are the sockets of a port's protocol.
func (p *Ports) outgoing(name string) *loops.Sockets {
	if strings.HasPrefix(name, string(ir.UDP)+"/") {
		return &p.udp
	}
	return &p.tcp
}

// swap gives a port other handlers. It returns false if the port is not open at their addresses.
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

// add takes a port that has been opened. It is closed again, and false returned, if nothing is to be open any more.
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

// remove closes a port if it is open. Its connections go on.
func (p *Ports) remove(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(name)
}

// drop is remove for whoever holds the mutex.
func (p *Ports) drop(name string) {
	gone := p.open[name]
	if gone == nil {
		return
	}
	delete(p.open, name)
	gone.close()
	p.log.Info("the port is closed; its connections may last a little longer", zap.String("port", name))
	p.retire(gone, gone.chain.Load())
	p.leaving[name] = gone
	p.running.Go("l4app/port", gone.serving.Wait)
}

// going returns the ports that are leaving.
func (p *Ports) going() map[string]*port {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.leaving)
}

// clear gives the addresses free of a port that is leaving, if it is.
func (p *Ports) clear(name string) {
	p.mu.Lock()
	gone := p.leaving[name]
	p.mu.Unlock()
	if gone != nil {
		gone.free()
	}
}

// waitsNoMore notes that a chain waits no more, which was one of a port or of those that it is the successor of.
func (p *Ports) waitsNoMore(of *port) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for of.successor != nil {
		of = of.successor
	}
	if of.waiting--; of.waiting == 0 && p.leaving[of.name] == of {
		delete(p.leaving, of.name)
	}
}

// retire lets go of a chain when the last of its connections has ended. They have to when its port has been gone for too long,
// or all is closed. A port that comes back has its connections back.
func (p *Ports) retire(of *port, c *chain) {
	ended := c.connections.refuse()
	of.waiting++
	p.running.Go("l4app/chain", func() {
		defer c.cancel()
		defer p.waitsNoMore(of)
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

// Outlast says that the process ends, and that Close, which comes when Caddy has stopped its apps, is to leave everything as
// it is for Leave. It may be called on any goroutine.
func (p *Ports) Outlast() { p.outlasts.Store(true) }

// Refuse closes all ports, and lets none be opened any more; connections go on. It may be called on any goroutine, and more
// than once.
func (p *Ports) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	for name := range p.open {
		p.drop(name)
	}
}

// Drain does what Refuse does, and waits until all connections have ended; when ctx is over it ends those that are left. The
// set cannot be used after it. It is called once, after Outlast.
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

// end does it at once.
func (p *Ports) end() {
	p.Refuse()
	close(p.closing)
	p.running.Wait()
	p.workers.close()
}
