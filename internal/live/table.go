// Package live serves HTTP from tables that change while requests are under way: virtual hosts, paths, and the chains
// of Caddy handlers that their routes share. Requests read immutable values behind atomic pointers; one writer replaces
// them.
package live

import (
	"errors"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/mtls"
	"github.com/k8singress/k8singress/internal/proxy"
	"github.com/k8singress/k8singress/internal/trust"
)

// Table is the HTTP half of what is live. Its methods that change it are for one goroutine.
type Table struct {
	index    atomic.Pointer[index]
	ready    atomic.Bool
	backends *endpoints.Table
	// authorities holds the CAs that client and backend certificates are verified against.
	authorities *trust.Store
	// connections outlive the chains that use them.
	connections *proxy.Pool

	ctx    caddy.Context
	chains map[string]*chain
	// refused are the routes, by host, that are not served as their document says.
	refused map[string][]refused
	// open are the streams of all routes, also of those that have gone.
	open drainGroup

	global global
	// policies are those of hosts that have one of their own, by host.
	policies map[string]ir.TLSPolicy
}

// NewTable returns a table without hosts, which answers 503 until MarkReady.
func NewTable(backends *endpoints.Table, authorities *trust.Store) *Table {
	t := &Table{
		backends: backends, authorities: authorities, connections: proxy.NewPool(), chains: map[string]*chain{},
		refused: map[string][]refused{}, policies: map[string]ir.TLSPolicy{},
	}
	t.connections.Follow(backends.Addresses())
	t.SetGlobal(&ir.Global{})
	t.index.Store(&index{})
	authorities.OnChange(t.checkStreams)
	return t
}

// MarkReady says that the table is complete: from then on a host that is not in it does not exist.
func (t *Table) MarkReady() { t.ready.Store(true) }

// Ready says whether MarkReady was called.
func (t *Table) Ready() bool { return t.ready.Load() }

// Update changes hosts; nil removes one. A route whose chain Caddy refuses answers 503, and no other is touched.
func (t *Table) Update(changes map[string]*document.Host) {
	t.retryRefused(changes)
	old := t.index.Load()
	next := make(map[string]*host, len(changes))
	var replaced []*host
	var ending []endingStreams
	for name, d := range changes {
		before := old.get(name)
		if before != nil {
			replaced = append(replaced, before)
		}
		delete(t.refused, name)
		next[name] = nil
		t.notePolicy(name, d)
		if d != nil {
			next[name] = t.build(name, d)
		}
		ending = append(ending, next[name].keepStreams(before)...)
	}
	t.index.Store(old.with(next))
	// Only now: a chain that the new hosts use too is kept.
	for _, h := range replaced {
		t.drop(h)
	}
	t.drain(ending)
}

// retryRefused provisions the refused chains of hosts again, each once. What Caddy missed may be there now.
func (t *Table) retryRefused(hosts map[string]*document.Host) {
	tried := map[*chain]bool{}
	for name := range hosts {
		for _, r := range t.refused[name] {
			for d := range r.route.destinations {
				if c := d.chain; t.chains[c.json] == c && c.refused != nil && !tried[c] {
					tried[c] = true
					// If it fails again, the chain says so itself.
					_, _ = c.provisionAgain(t.ctx)
				}
			}
		}
	}
}

func (t *Table) build(name string, d *document.Host) *host {
	h := newHost(name, d)
	if d.ClientAuth != nil {
		h.clients, h.clientAuth = mtls.New(d.ClientAuth, t.authorities.Authority(d.ClientAuth.Secret)), d.ClientAuth
	}
	h.passthrough = t.passthrough(name, d)
	for _, r := range d.Routes {
		t.route(h, r)
	}
	return h
}

func (t *Table) route(h *host, d *document.Route) {
	r := &Route{
		Route:    exchange.Route{Host: h.name, Path: d.Path, Type: d.Type, Origin: d.Origin},
		redirect: d.HTTPSRedirect, streams: &streams{all: &t.open},
	}
	if len(d.Split) > 0 {
		r.split = newSplit(d.Split, t.destination)
		r.destination = *r.split.Shares[0].To
	} else {
		r.destination = t.destination(&d.Destination)
	}
	if err := t.place(h, r, d.Match); err != nil {
		t.dropRoute(r)
		t.refuse(r, err)
	} else if r.refused() != nil {
		t.refuse(r, nil)
	}
}

// place puts a route into the index of its host.
func (t *Table) place(h *host, r *Route, match *ir.Conditions) (err error) {
	if r.split != nil {
		if err := r.split.Check(); err != nil {
			return err
		}
	}
	if r.conditions, err = newConditions(match, r.backend); err != nil {
		return err
	}
	return h.add(r)
}

func (t *Table) destination(d *document.Destination) destination {
	to := destination{chain: t.chainOf(d), access: d.Access}
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
		return newClosed("", errors.New(d.Refused))
	}
	return t.sharedChain(d.Chain)
}

// sharedChain returns the chain with this JSON, and counts one more user of it.
func (t *Table) sharedChain(source []byte) *chain {
	if c, ok := t.chains[string(source)]; ok {
		c.users++
		return c
	}
	c := newChain(t.ctx, string(source))
	t.chains[c.json] = c
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
		if t.chains[c.json] == c {
			delete(t.chains, c.json)
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
	t.connections.Close()
	t.ready.Store(false)
	t.index.Store(&index{})
	for _, c := range t.chains {
		c.replace(nil)
	}
	clear(t.chains)
	clear(t.refused)
}

// Hosts returns how many virtual hosts there are, Chains how many different chains their routes share.
func (t *Table) Hosts() int {
	n := 0
	t.index.Load().all(func(*host) { n++ })
	return n
}

// Chains returns how many different chains the routes share, those that are refused among them. It is for the goroutine that changes the table.
func (t *Table) Chains() int { return len(t.chains) }
