// Package live serves HTTP from tables that change while requests are under way: virtual hosts, paths, and the chains
// of Caddy handlers that their routes share. Requests read immutable values behind atomic pointers; one writer replaces
// them.
package live

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/clientauth"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/proxy"
)

// Table is the HTTP half of what is live. Its methods that change it are for one goroutine.
type Table struct {
	index    atomic.Pointer[index]
	ready    atomic.Bool
	backends *endpoints.Table
	// authorities tell whom to believe.
	authorities *certs.Store
	// connections outlive the chains that use them.
	connections *proxy.Pool

	ctx    caddy.Context
	chains map[string]*chain
	// open are the streams of all routes, also of those that have gone.
	open crowd

	global global
}

// Refusal is a part of a document that cannot be served. Everything else is.
type Refusal struct {
	// Host and Path say where it stands, Origin which object it comes from.
	Host, Path, Origin string
	Err                error
}

// NewTable returns a table without hosts, which answers 503 until MarkReady.
func NewTable(backends *endpoints.Table, authorities *certs.Store) *Table {
	t := &Table{backends: backends, authorities: authorities, connections: proxy.NewPool(), chains: map[string]*chain{}}
	t.connections.Follow(backends.Addresses())
	t.SetGlobal(&ir.Global{})
	t.index.Store(&index{})
	return t
}

// MarkReady says that the table is complete: from then on a host that is not in it does not exist.
func (t *Table) MarkReady() { t.ready.Store(true) }

// Ready says whether MarkReady was called.
func (t *Table) Ready() bool { return t.ready.Load() }

// Update changes hosts; nil removes one. A route whose chain Caddy refuses answers 503, and no other is touched.
func (t *Table) Update(changes map[string]*document.Host) []Refusal {
	var refused []Refusal
	old := t.index.Load()
	next := make(map[string]*host, len(changes))
	var replaced []*host
	var gone []*streams
	// In the order of names, so that all replicas report alike.
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		before := old.get(name)
		if before != nil {
			replaced = append(replaced, before)
		}
		next[name] = nil
		if d := changes[name]; d != nil {
			h, bad := t.build(name, d)
			next[name], refused = h, append(refused, bad...)
		}
		gone = append(gone, next[name].inherit(before)...)
	}
	t.index.Store(old.with(next))
	// Only now: a chain that the new hosts use too is kept.
	for _, h := range replaced {
		t.drop(h)
	}
	t.drain(gone)
	return refused
}

func (t *Table) build(name string, d *document.Host) (*host, []Refusal) {
	h := newHost(name, d)
	if d.ClientAuth != nil {
		h.clients, h.clientAuth = clientauth.New(d.ClientAuth, t.authorities.Authority(d.ClientAuth.Secret)), d.ClientAuth
	}
	var refused []Refusal
	for _, r := range d.Routes {
		if err := t.route(h, r); err != nil {
			refused = append(refused, Refusal{Host: name, Path: r.Path, Origin: r.Origin, Err: err})
		}
	}
	return h, refused
}

func (t *Table) route(h *host, d *document.Route) error {
	r := &Route{Host: h.name, Path: d.Path, Type: d.Type, Origin: d.Origin, streams: &streams{all: &t.open}}
	if d.Backend != "" {
		r.Backend = t.backends.Backend(d.Backend)
	}
	c, refused := t.intern(d.Chain)
	if refused != nil {
		// Without a route, its requests would go to the one with the next shorter path, which may lead to the same backend
		// and not have what keeps them out here.
		c, refused = newClosed(), fmt.Errorf("requests get 503, because Caddy refuses what they should meet: %w", refused)
	}
	r.chain = c
	if err := h.add(r); err != nil {
		t.forget(c)
		return err
	}
	return refused
}

// intern returns the chain with this JSON, and counts one more user of it.
func (t *Table) intern(source []byte) (*chain, error) {
	if c, ok := t.chains[string(source)]; ok {
		c.users++
		return c, nil
	}
	json := string(source)
	i, err := provision(t.ctx, json)
	if err != nil {
		return nil, err
	}
	c := &chain{json: json, users: 1}
	c.current.Store(i)
	t.chains[json] = c
	return c, nil
}

func (t *Table) drop(h *host) {
	for _, r := range h.all {
		t.forget(r.chain)
	}
}

func (t *Table) forget(c *chain) {
	if c.users--; c.users == 0 {
		delete(t.chains, c.json)
		c.replace(nil)
	}
}

// Adopt makes ctx, the context of Caddy's newest configuration, the one under which chains are provisioned, and
// provisions those there are again. Requests under way end with what they began. A chain that cannot be provisioned under
// ctx, because it names what the new configuration does not have, goes on as it was: a route that was protected does not
// lose its protection. ctx must outlive its configuration.
func (t *Table) Adopt(ctx caddy.Context) error {
	t.ctx = ctx
	var errs []error
	for _, c := range t.chains {
		i, err := provision(ctx, c.json)
		if err != nil {
			// It worked under the configuration before, and goes on under that.
			errs = append(errs, err)
			continue
		}
		c.replace(i)
	}
	return errors.Join(errs...)
}

// Close ends all chains. Requests under way go on to their end.
func (t *Table) Close() {
	t.connections.Close()
	t.ready.Store(false)
	t.index.Store(&index{})
	for _, c := range t.chains {
		c.replace(nil)
	}
	t.chains = map[string]*chain{}
}

// Hosts returns how many virtual hosts there are, Chains how many different chains their routes share.
func (t *Table) Hosts() int {
	n := 0
	t.index.Load().all(func(*host) { n++ })
	return n
}

// Chains returns how many different chains the routes share. It is for the goroutine that changes the table.
func (t *Table) Chains() int { return len(t.chains) }
