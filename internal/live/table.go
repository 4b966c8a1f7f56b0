// Package live serves HTTP from tables that change while requests are under way: virtual hosts, paths, and the chains
// of Caddy handlers that their routes share. Requests read immutable values behind atomic pointers; one writer replaces
// them.
package live

import (
	"crypto/sha256"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/accesslog"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/filter"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/logs"
	"github.com/k8singress/k8singress/internal/mirror"
	"github.com/k8singress/k8singress/internal/mtls"
	"github.com/k8singress/k8singress/internal/pattern"
	"github.com/k8singress/k8singress/internal/proxy"
	"github.com/k8singress/k8singress/internal/tracing"
	"github.com/k8singress/k8singress/internal/trust"
)

// Table is the HTTP half of what is live. Its methods that change it are for one goroutine.
type Table struct {
	// group has the virtual hosts of all Ingresses, groups those of other listener groups, by name.
	group
	groups    map[string]*group
	listeners atomic.Pointer[listeners]

	ready    atomic.Bool
	backends *endpoints.Table
	// authorities holds the CAs that client and backend certificates are verified against.
	authorities *trust.Store
	// connections outlive the chains that use them.
	connections *proxy.Pool
	// services are the connections to external services that filters ask.
	services *proxy.Pool
	// logs are the files of the access log.
	logs *accesslog.Files
	// spans says what becomes of what OpenTelemetry is told.
	spans *tracing.Exports
	// shared is what filters have in common.
	shared *filter.Shared

	ctx    caddy.Context
	chains map[chainID]*chain
	steps  *sharedSteps
	// open are the streams of all routes, also of those that have gone.
	open drainGroup

	global  global
	options atomic.Pointer[Options]
}

// Options are those of the administrator that requests look at. They are not for objects to say.
type Options struct {
	// StrictPaths refuses each path that servers read in more than one way.
	StrictPaths bool
	// NoAccessLog notes no requests and no connections, whatever the ConfigMap says.
	NoAccessLog bool
	// Via tells clients in a Via field that the answer has come through here.
	Via bool
}

// SetOptions replaces the options, from the next request on.
func (t *Table) SetOptions(o Options) {
	t.options.Store(&o)
	t.global.answers.Store(newAnswers(t.Global(), &o))
	t.setAccessLog(t.Global())
}

// NewTable returns a table without hosts, which answers 503 until MarkReady.
func NewTable(backends *endpoints.Table, authorities *trust.Store) *Table {
	t := &Table{
		backends: backends, authorities: authorities, connections: proxy.NewPool(backends.Guard()), chains: map[chainID]*chain{},
		services: proxy.NewServicePool(backends.Guard()), groups: map[string]*group{},
		logs: accesslog.NewFiles(logs.Logger("k8singress.access")), spans: tracing.NewExports(logs.Logger("k8singress.tracing")),
	}
	t.shared = filter.NewShared(t.services.Ask, mirror.NewSender(t.services.Ask, logs.Logger("k8singress.mirror")))
	t.steps = newSharedSteps(t.shared)
	t.group.init()
	t.listeners.Store(&listeners{})
	t.connections.Follow(backends.Addresses())
	t.options.Store(&Options{})
	t.SetGlobal(&ir.Global{})
	authorities.OnChange(t.checkStreams)
	t.shared.Users.OnChange(t.checkUsers)
	return t
}

// Shared returns what the filters of all chains have in common.
func (t *Table) Shared() *filter.Shared { return t.shared }

// MarkReady says that the table is complete: from then on a host that is not in it does not exist.
func (t *Table) MarkReady() { t.ready.Store(true) }

// Ready says whether MarkReady was called.
func (t *Table) Ready() bool { return t.ready.Load() }

// Update changes hosts; nil removes one. A route whose chain Caddy refuses answers 503, and no other is touched.
func (t *Table) Update(changes map[string]*document.Host) { t.update(&t.group, changes) }

func (t *Table) update(g *group, changes map[string]*document.Host) {
	t.retryRefused(g, changes)
	old := g.index.Load()
	next := make(map[string]*host, len(changes))
	var replaced []*host
	var ending []endingStreams
	for name, d := range changes {
		before := old.get(name)
		if before != nil {
			replaced = append(replaced, before)
		}
		delete(g.refused, name)
		next[name] = nil
		if d != nil {
			next[name] = t.build(g, name, d)
		}
		ending = append(ending, next[name].keepStreams(before)...)
	}
	g.index.Store(old.with(next))
	// Only now: a chain that the new hosts use too is kept.
	for _, h := range replaced {
		t.drop(h)
	}
	t.drain(ending)
}

// retryRefused provisions the refused chains of hosts again, each once. What Caddy missed may be there now.
func (t *Table) retryRefused(g *group, hosts map[string]*document.Host) {
	tried := map[*chain]bool{}
	for name := range hosts {
		for _, r := range g.refused[name] {
			for d := range r.route.destinations {
				if c := d.chain; t.chains[c.id] == c && c.refused != nil && !tried[c] {
					tried[c] = true
					// If it fails again, the chain says so itself.
					_, _ = c.provisionAgain(t.ctx)
				}
			}
		}
	}
}

func (t *Table) build(g *group, name string, d *document.Host) *host {
	h := newHost(name, d)
	if expression, ok := strings.CutPrefix(name, "~"); ok {
		var err error
		if h.expression, err = pattern.CompileFold(expression); err != nil {
			g.refuse(&Route{Route: exchange.Route{Host: name}, destination: destination{chain: newClosed(err)}}, err)
		}
	}
	if d.ClientAuth != nil {
		h.clients, h.clientAuth = mtls.New(d.ClientAuth, t.authorities.Authority(d.ClientAuth.Secret)), d.ClientAuth
	}
	h.passthrough = t.passthrough(g, name, d)
	for _, r := range d.Routes {
		t.route(g, h, r)
	}
	h.uniform = h.isUniform()
	return h
}

func (t *Table) route(g *group, h *host, d *document.Route) {
	r := &Route{
		Route:    exchange.Route{Host: h.name, Path: d.Path, Type: d.Type, Origin: d.Origin, Unlogged: d.Unlogged},
		redirect: d.HTTPSRedirect, streams: &streams{all: &t.open}, errors: t.errorPages(d.ErrorPages),
	}
	r.tracing = tracing.NewRoute(d.Tracing, &r.Route)
	if len(d.Split) > 0 {
		r.split = newSplit(d.Split, t.destination)
		r.destination = *r.split.Shares[0].To
	} else {
		r.destination = t.destination(&d.Destination)
	}
	if err := r.match(d.Match); err != nil {
		t.closeRoute(r, err)
	}
	if err := h.add(r); err != nil {
		t.dropRoute(r)
		g.refuse(r, err)
	} else if r.refused() != nil {
		g.refuse(r, nil)
	}
}

// match sets the conditions of a route. It fails where they, or the weights of its destinations, decide nothing.
func (r *Route) match(conditions *ir.Conditions) (err error) {
	if r.split != nil {
		if err := r.split.Check(); err != nil {
			return err
		}
	}
	r.conditions, err = newConditions(conditions, r.backend)
	return err
}

// closeRoute has a route answer 503 to every request for its path: without it they would get to the next one, which may lack what
// guards this one.
func (t *Table) closeRoute(r *Route, why error) {
	t.dropRoute(r)
	r.split, r.errors, r.destination = nil, nil, destination{chain: newClosed(why)}
}

func (t *Table) destination(d *document.Destination) destination {
	to := destination{chain: t.chainOf(d), access: d.Access, users: d.Users}
	if d.Backend != "" {
		to.backend = t.backends.Backend(d.Backend)
	}
	if d.TLS != nil {
		to.secured = t.connections.Secure(d.TLS, t.authorities.Authority(d.TLS.Secret))
	}
	return to
}

// chainOf returns what answers for a destination.
func (t *Table) chainOf(d *document.Destination) *chain {
	if d.Refused != "" {
		return newClosed(errors.New(d.Refused))
	}
	return t.sharedChain(d.Chain)
}

// sharedChain returns the chain with this JSON, and counts one more user of it.
func (t *Table) sharedChain(source []byte) *chain {
	id := chainID(sha256.Sum256(source))
	if c, ok := t.chains[id]; ok {
		c.users++
		return c
	}
	c := newChain(t.ctx, id, source, t.steps)
	t.chains[id] = c
	return c
}

func (t *Table) drop(h *host) {
	for _, r := range h.all {
		t.dropRoute(r)
	}
}

func (t *Table) dropRoute(r *Route) {
	for d := range r.destinations {
		t.forget(d.chain)
		d.secured.Release()
	}
}

func (t *Table) forget(c *chain) {
	if c.users--; c.users == 0 {
		if t.chains[c.id] == c {
			delete(t.chains, c.id)
		}
		c.replace(nil)
	}
}

// Adopt makes ctx, the context of Caddy's newest configuration, the one under which chains are provisioned, and
// provisions those there are again, also those that were refused. Requests under way end with what they began; streams end
// some time later if the chain is not what it was. A chain that cannot be provisioned under ctx, because it names what the
// new configuration does not have, goes on as it was: a route that was protected does not lose its protection. ctx must
// outlive its configuration.
func (t *Table) Adopt(ctx caddy.Context) error {
	t.ctx = ctx
	var errs []error
	others := map[*chain]*configDigest{}
	for _, c := range t.chains {
		before := c.current.Load().parts
		changed, err := c.provisionAgain(ctx)
		if err != nil {
			errs = append(errs, err)
		}
		if changed {
			others[c] = before
		}
	}
	t.drain(t.streamsOf(others))
	return errors.Join(errs...)
}

// Close ends all chains. Requests under way go on to their end; connections that are passed through have none, and end some
// time later.
func (t *Table) Close() {
	t.endPassthrough()
	t.shared.Mirrors.Close()
	t.connections.Close()
	t.services.Close()
	t.ready.Store(false)
	t.listeners.Store(&listeners{})
	t.group.init()
	clear(t.groups)
	for _, c := range t.chains {
		c.replace(nil)
	}
	clear(t.chains)
	t.logs.Flush()
	// A collector that takes nothing holds up nothing but this.
	t.global.tracer.Swap(nil).Flush()
}

// Hosts returns how many virtual hosts of Ingresses there are, Chains how many different chains all routes share.
func (t *Table) Hosts() int {
	n := 0
	t.index.Load().all(func(*host) { n++ })
	return n
}

// Chains returns how many different chains the routes share, those that are refused among them. It is for the goroutine that changes the table.
func (t *Table) Chains() int { return len(t.chains) }
