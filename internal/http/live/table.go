// Package live serves HTTP requests from a routing table that changes at run time, without a reload of Caddy. The table
// holds virtual hosts, their routes, and the handler chains that the routes share. Requests read immutable values
// through atomic pointers. Only one goroutine replaces these values.
package live

import (
	"crypto/sha256"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/http/accesslog"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/http/meter"
	"github.com/k8singress/k8singress/internal/http/mirror"
	"github.com/k8singress/k8singress/internal/http/mtls"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/http/tracing"
	"github.com/k8singress/k8singress/internal/http/variables"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/process/logs"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

// Table is a routing table: it holds the virtual hosts, routes and HTTP settings of the live configuration. Only one
// goroutine may call the methods that change it.
type Table struct {
	// The embedded group holds the virtual hosts of all Ingresses. groups maps names to the other listener groups.
	group
	groups    map[string]*group
	listeners atomic.Pointer[listeners]

	ready    atomic.Bool
	backends *endpoints.Table
	// authorities holds the CA certificates with which client certificates and the certificates of endpoints are
	// verified.
	authorities *trust.Store
	// connections is the pool of connections to endpoints. The connections stay open when the configuration of the
	// routes changes.
	connections *proxy.Pool
	// services is the pool of connections to services that filters call, such as external authentication services.
	services *proxy.Pool
	// meters counts the requests of each route.
	meters meter.Registry
	// logs holds the open files of the access logs.
	logs *accesslog.Files
	// spans sends tracing spans to OpenTelemetry collectors.
	spans *tracing.Exports
	// shared holds the resources, such as caches, that the filters of all handler chains share.
	shared *filter.Shared

	ctx    caddy.Context
	chains shrinking.Map[chainID, *chain]
	steps  *sharedSteps
	// variables are the variables for the next update of a listener group.
	variables *variables.Set
	// open counts the open streams of all routes, including removed routes.
	open drainGroup

	global  global
	options atomic.Pointer[Options]
}

// Options are administrator settings that are read for each request. Kubernetes objects cannot change them.
type Options struct {
	// StrictPaths rejects all ambiguous paths, which servers may interpret in more than one way.
	StrictPaths bool
	// NoAccessLog disables the access logs of requests and connections. The ConfigMap cannot enable them again.
	NoAccessLog bool
	// AccessLog gets the lines about requests. If it is nil, they have the format and the destination in the ConfigMap.
	AccessLog accesslog.Output
	// NoRouteMetrics disables the counters of the routes.
	NoRouteMetrics bool
	// Via adds a Via header to responses. ViaEndpoints adds it to requests to endpoints and services.
	Via, ViaEndpoints bool
	// NoErrorBodies makes the controller's own error responses empty.
	NoErrorBodies bool
}

// SetOptions replaces the options. New requests use the new options.
func (t *Table) SetOptions(o Options) {
	t.options.Store(&o)
	t.global.responseHeaders.Store(newResponseHeaders(t.Global(), &o))
	t.setAccessLog(t.Global())
}

// NewTable returns a routing table without hosts. Serve returns NotReady until MarkReady is called.
func NewTable(backends *endpoints.Table, authorities *trust.Store) *Table {
	t := &Table{
		backends: backends, authorities: authorities, connections: proxy.NewPool(backends.Guard()),
		services: proxy.NewServicePool(backends.Guard()), groups: map[string]*group{},
		logs:  accesslog.NewFiles(logs.Logger("k8singress.access")),
		spans: tracing.NewExports(logs.Logger("k8singress.tracing")),
	}
	t.shared = filter.NewShared(t.services.Call, mirror.NewSender(t.services.Call, logs.Logger("k8singress.mirror")))
	t.steps = newSharedSteps(t.shared)
	t.group.init()
	t.listeners.Store(&listeners{})
	t.connections.SetEndpoints(backends.Addresses())
	t.options.Store(&Options{})
	t.SetGlobal(&ir.Global{})
	authorities.OnChange(t.checkStreams)
	t.shared.Users.OnChange(t.checkUsers)
	return t
}

// Meters returns the counters of the routes. They also provide metrics.
func (t *Table) Meters() *meter.Registry { return &t.meters }

// Shared returns the resources, such as caches, that the filters of all handler chains share.
func (t *Table) Shared() *filter.Shared { return t.shared }

// MarkReady is called when the routing table is complete. Serve then routes requests instead of returning NotReady.
func (t *Table) MarkReady() { t.ready.Store(true) }

// Ready reports whether MarkReady was called.
func (t *Table) Ready() bool { return t.ready.Load() }

// Update adds, replaces and removes hosts of Ingresses. A nil value removes the host. Requests see all changes, and the
// variables last passed to SetGlobal, at once. If Caddy rejects the handler
// chain of a route, the route returns 503; other routes are not affected.
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
		g.refused.Delete(name)
		next[name] = nil
		if d != nil {
			next[name] = t.build(g, name, d)
		}
		ending = append(ending, next[name].keepStreams(before)...)
	}
	g.index.Store(old.with(next, t.variables))
	// Drop the old hosts only after the new hosts were created, so that chains that an old and a new host use are not
	// provisioned again.
	for _, h := range replaced {
		t.drop(h)
	}
	t.drain(ending)
}

// retryRefused tries again to provision the rejected handler chains of the given hosts. Caddy may accept them now, for
// example because a missing module or resource has become available.
func (t *Table) retryRefused(g *group, hosts map[string]*document.Host) {
	tried := map[*chain]bool{}
	for name := range hosts {
		for _, r := range g.refused.Get(name) {
			for d := range r.route.destinations {
				if c := d.chain; t.chains.Get(c.id) == c && c.refused != nil && !tried[c] {
					tried[c] = true
					// Ignore the error: if provisioning fails again, provisionAgain stores the error in the chain.
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
			g.refuse(&Route{Route: exchange.Route{Host: name}, destination: destination{chain: newUnavailable(err)}},
				err)
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
		Route: exchange.Route{Host: h.name, Path: d.Path, Type: d.Type, Origin: d.Origin,
			RoutePolicy: d.RoutePolicy},
		redirect: d.HTTPSRedirect, streams: &streams{all: &t.open}, errors: t.errorPages(d.ErrorPages),
		everywhere: d.Everywhere, within: d.Within,
	}
	r.tracing = tracing.NewRoute(&r.Route)
	if len(d.Split) > 0 {
		r.split = newSplit(d.Split, func(share *document.Share) destination {
			return t.destination(&share.Destination, labelsOf(h.name, d, share))
		})
		r.destination = *r.split.Shares[0].To
	} else {
		r.destination = t.destination(&d.Destination, labelsOf(h.name, d, nil))
	}
	if err := r.match(d.Match); err != nil {
		t.makeUnavailable(r, err)
	}
	if err := h.add(r); err != nil {
		t.dropRoute(r)
		g.refuse(r, err)
	} else if r.refused() != nil {
		g.refuse(r, nil)
	}
}

// match compiles the conditions and stores them in the route. It returns an error if the conditions or the weights of
// the route's destinations are invalid.
func (r *Route) match(conditions *ir.Conditions) (err error) {
	if r.split != nil {
		if err := r.split.Check(); err != nil {
			return err
		}
	}
	r.conditions, err = newConditions(conditions, r.backend)
	return err
}

// makeUnavailable replaces the destination of a route with a chain that responds with 503. If the route were removed
// instead, its requests would match the next route, which may not have the same access rules.
func (t *Table) makeUnavailable(r *Route, why error) {
	closed := destination{chain: newUnavailable(why)}
	if m := r.destination.meter; m != nil {
		closed.meter = t.meters.Acquire(m.Labels)
	}
	t.dropRoute(r)
	r.split, r.errors, r.destination = nil, nil, closed
}

// destination converts a destination from the format of the live configuration. labels identify the counters of its
// requests.
func (t *Table) destination(d *document.Destination, labels meter.Labels) destination {
	to := destination{access: d.Access, users: d.Users, meter: t.meters.Acquire(labels)}
	if d.Backend != "" {
		to.backend = t.backends.Backend(d.Backend)
	}
	var err error
	if d.TLS != nil {
		to.secured, err = t.connections.Secure(d.TLS, t.authorities.Authority(d.TLS.Secret))
	}
	if err != nil {
		to.chain = newUnavailable(err)
	} else {
		to.chain = t.chainOf(d)
	}
	return to
}

// chainOf returns the handler chain of a destination.
func (t *Table) chainOf(d *document.Destination) *chain {
	if d.Refused != "" {
		return newUnavailable(errors.New(d.Refused))
	}
	return t.sharedChain(d.Chain)
}

// sharedChain returns the handler chain with this JSON, and increments its reference count. If there is no such chain,
// sharedChain creates it.
func (t *Table) sharedChain(source []byte) *chain {
	id := chainID(sha256.Sum256(source))
	if c := t.chains.Get(id); c != nil {
		c.users++
		return c
	}
	c := newChain(t.ctx, id, source, t.steps)
	t.chains.Set(id, c)
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
		t.meters.Release(d.meter)
	}
}

func (t *Table) forget(c *chain) {
	if c.users--; c.users == 0 {
		if t.chains.Get(c.id) == c {
			t.chains.Delete(c.id)
		}
		c.replace(nil)
	}
}

// Adopt must be called when Caddy has loaded a new configuration. It provisions all handler chains again, including
// rejected chains. ctx is the context of the new configuration. It is also used for chains that are created later, and
// must not be canceled when Caddy loads the next configuration. Requests in flight continue with the old instance of
// their chain. If the parts of the configuration that a chain uses have changed, open streams (such as WebSocket
// connections) of the chain end after the drain time. If a chain cannot be provisioned with the new configuration, its
// old instance stays in use, so that access to its routes stays restricted.
func (t *Table) Adopt(ctx caddy.Context) error {
	t.ctx = ctx
	var errs []error
	others := map[*chain]*configDigest{}
	for c := range t.chains.Values() {
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

// Close removes all hosts, listeners and handler chains. Requests in flight can finish. Passthrough connections are
// closed after the drain time, because they may never end.
func (t *Table) Close() {
	t.endPassthrough()
	t.shared.Mirrors.Close()
	t.connections.Close()
	t.services.Close()
	t.ready.Store(false)
	t.listeners.Store(&listeners{})
	t.group.init()
	clear(t.groups)
	for c := range t.chains.Values() {
		c.replace(nil)
	}
	t.chains.Clear()
	t.logs.Flush()
	// Flush the tracer last, because it may block for a while if the collector does not respond.
	t.global.tracer.Swap(nil).Flush()
}

// Hosts returns the number of virtual hosts of Ingresses.
func (t *Table) Hosts() int {
	n := 0
	t.index.Load().all(func(*host) { n++ })
	return n
}

// Chains returns the number of distinct handler chains of all routes, including rejected chains. Only the goroutine
// that changes the routing table may call it.
func (t *Table) Chains() int { return t.chains.Len() }
