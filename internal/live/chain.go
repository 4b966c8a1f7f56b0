package live

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/filter"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/proxy"
)

// chain is a list of Caddy routes, interned by its JSON: all routes with equal JSON share it.
type chain struct {
	json   string
	shared *filter.Shared
	// users counts the routes in the table that have it. It belongs to the table's writer.
	users int
	// refused is why the chain answers 503 in place of what it says; it is nil for one that works. It belongs to the table's
	// writer.
	refused error
	// current changes when Caddy loads a new configuration; requests that began with the old one end with it.
	current atomic.Pointer[instance]
}

// instance is a chain provisioned under one Caddy configuration, in a sub-context of its own.
type instance struct {
	steps  []step
	cancel func()
	parts  *configDigest
	// holders counts the requests in it, and one more while it is current. At zero it is cleaned up, and stays zero.
	holders atomic.Int64
}

// configDigest are what a chain takes from the configuration. See NoteConfig. Instances that follow each other with the same share one.
type configDigest struct{ digest string }

// provision makes an instance of a chain, whose filters share what those of its table do. ctx is the context of the app; it must not be
// cancelled when Caddy loads a new configuration, because requests may go on.
func provision(ctx caddy.Context, source string, shared *filter.Shared) (*instance, error) {
	var routes caddyhttp.RouteList
	if err := caddy.StrictUnmarshalJSON([]byte(source), &routes); err != nil {
		return nil, fmt.Errorf("decoding the chain: %w", err)
	}
	sum := sha256.New()
	ctx.Context = context.WithValue(context.WithValue(ctx.Context, partsKey{}, sum), sharedKey{}, shared)
	sub, cancel := caddy.NewContext(ctx)
	steps, err := compile(sub, routes)
	if err != nil {
		cancel()
		return nil, err
	}
	i := &instance{steps: steps, cancel: cancel, parts: &configDigest{string(sum.Sum(nil))}}
	i.holders.Store(1)
	return i, nil
}

type partsKey struct{}

// NoteConfig is for a handler that takes a part of what it does from the configuration: it says in Provision what that is. A
// route with such a handler is another one for its streams when the configuration says something else.
func NoteConfig(ctx context.Context, part []byte) {
	if sum, ok := ctx.Value(partsKey{}).(hash.Hash); ok {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
}

type sharedKey struct{}

// SharedFrom returns what a filter shares that is provisioned in a chain; it is nil elsewhere.
func SharedFrom(ctx context.Context) *filter.Shared {
	shared, _ := ctx.Value(sharedKey{}).(*filter.Shared)
	return shared
}

// newChain returns the chain for some JSON. One that Caddy refuses is closed.
func newChain(ctx caddy.Context, json string, shared *filter.Shared) *chain {
	i, err := provision(ctx, json, shared)
	if err != nil {
		c := newClosed(json, refusedByCaddy(err))
		c.shared = shared
		return c
	}
	c := &chain{json: json, shared: shared, users: 1}
	c.current.Store(i)
	return c
}

func refusedByCaddy(err error) error {
	return fmt.Errorf("the handler chain was rejected by Caddy: %w", err)
}

// newClosed returns a chain that answers 503.
func newClosed(json string, why error) *chain {
	i := &instance{steps: closed, cancel: func() {}, parts: &configDigest{}}
	i.holders.Store(1)
	c := &chain{json: json, users: 1, refused: why}
	c.current.Store(i)
	return c
}

// provisionAgain makes another instance under another configuration the current one. It says whether the chain lets in
// others now than before. With an error the chain is what it was.
func (c *chain) provisionAgain(ctx caddy.Context) (changed bool, err error) {
	i, err := provision(ctx, c.json, c.shared)
	if err != nil {
		if c.refused != nil {
			c.refused = refusedByCaddy(err)
		}
		return false, err
	}
	before := c.current.Load().parts
	if changed = *i.parts != *before; !changed {
		i.parts = before
	}
	c.replace(i)
	c.refused = nil
	return changed, nil
}

// closed answers in place of a chain that Caddy refuses.
var closed = []step{{filter: unavailable{}}}

type unavailable struct{}

// Apply answers 503. The Refusal has said why, once; the log need not, each time.
func (unavailable) Apply(x *exchange.Exchange) (bool, error) {
	return true, x.Respond(http.StatusServiceUnavailable, "")
}

// proxyHandler is the name of the handler at the end of a chain.
const proxyHandler = "k8singress_proxy"

// compile makes steps of routes. Routes with matchers are left to Caddy, with all that is in them. A panic of a module becomes an
// error: one bad chain must not end the process.
func compile(ctx caddy.Context, routes caddyhttp.RouteList) (steps []step, err error) {
	if caught := panics.Try(func() {
		if slices.ContainsFunc(routes, conditional) {
			if err = routes.Provision(ctx); err == nil {
				steps = []step{{handler: matched{routes}}}
			}
			return
		}
		for _, route := range routes {
			for _, raw := range route.HandlersRaw {
				var s step
				if s, err = newStep(ctx, raw); err != nil {
					return
				}
				steps = append(steps, s)
			}
		}
	}); caught != nil {
		return nil, fmt.Errorf("panic: %w", caught)
	}
	return steps, err
}

// conditional says whether a route is not for every request, or ends the list for some.
func conditional(r caddyhttp.Route) bool {
	return len(r.MatcherSetsRaw) > 0 || r.Group != "" || r.Terminal
}

// matched are routes that Caddy has to choose from.
type matched struct{ routes caddyhttp.RouteList }

func (m matched) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return m.routes.Compile(next).ServeHTTP(w, r)
}

func newStep(ctx caddy.Context, raw json.RawMessage) (step, error) {
	var of struct {
		Handler string `json:"handler"`
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return step{}, fmt.Errorf("decoding a handler: %w", err)
	}
	if of.Handler == proxyHandler {
		settings, err := filter.Decode[ir.Proxy](raw)
		if err != nil {
			return step{}, err
		}
		s, err := proxy.NewSettings(settings)
		return step{proxy: s}, err
	}
	if f, ok, err := filter.New(of.Handler, raw, SharedFrom(ctx)); ok {
		return step{filter: f}, err
	}
	module, err := ctx.LoadModule(&struct {
		Raw json.RawMessage `caddy:"namespace=http.handlers inline_key=handler"`
	}{raw}, "Raw")
	if err != nil {
		return step{}, fmt.Errorf("loading the handler %s: %w", of.Handler, err)
	}
	return step{handler: module.(caddyhttp.MiddlewareHandler)}, nil
}

// acquire returns the instance that a new request is to use, until release. It returns nil when the chain is no longer in
// the table: the request has to look its route up again.
func (c *chain) acquire() *instance {
	for {
		i := c.current.Load()
		if i == nil {
			return nil
		}
		holders := i.holders.Load()
		// At zero it has just been replaced, and the next one is already there.
		if holders > 0 && i.holders.CompareAndSwap(holders, holders+1) {
			return i
		}
	}
}

func (i *instance) release() {
	if i.holders.Add(-1) == 0 {
		// Not on the request's time: the cleanup of modules may wait.
		go i.cancel()
	}
}

// replace makes another instance, or none, the current one. The old one ends with its last request.
func (c *chain) replace(next *instance) {
	if old := c.current.Swap(next); old != nil {
		old.release()
	}
}
