package live

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"net/http"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/panics"
)

// chain is a list of Caddy routes, interned by its JSON: all routes with equal JSON share it.
type chain struct {
	json string
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
	handler caddyhttp.Handler
	cancel  func()
	parts   *configDigest
	// holders counts the requests in it, and one more while it is current. At zero it is cleaned up, and stays zero.
	holders atomic.Int64
}

// configDigest are what a chain takes from the configuration. See NoteConfig. Instances that follow each other with the same share one.
type configDigest struct{ digest string }

// provision makes an instance of a chain. ctx is the context of the app; it must not be cancelled when Caddy loads a new
// configuration, because requests may go on.
func provision(ctx caddy.Context, source string) (*instance, error) {
	var routes caddyhttp.RouteList
	if err := caddy.StrictUnmarshalJSON([]byte(source), &routes); err != nil {
		return nil, fmt.Errorf("decoding the chain: %w", err)
	}
	sum := sha256.New()
	ctx.Context = context.WithValue(ctx.Context, partsKey{}, sum)
	sub, cancel := caddy.NewContext(ctx)
	if err := provisionRoutes(sub, routes); err != nil {
		cancel()
		return nil, err
	}
	i := &instance{handler: compile(routes), cancel: cancel, parts: &configDigest{string(sum.Sum(nil))}}
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

// newChain returns the chain for some JSON. One that Caddy refuses is closed.
func newChain(ctx caddy.Context, json string) *chain {
	i, err := provision(ctx, json)
	if err != nil {
		return newClosed(json, refusedByCaddy(err))
	}
	c := &chain{json: json, users: 1}
	c.current.Store(i)
	return c
}

func refusedByCaddy(err error) error {
	return fmt.Errorf("the handler chain was rejected by Caddy: %w", err)
}

// newClosed returns a chain that answers 503.
func newClosed(json string, why error) *chain {
	i := &instance{handler: closed, cancel: func() {}, parts: &configDigest{}}
	i.holders.Store(1)
	c := &chain{json: json, users: 1, refused: why}
	c.current.Store(i)
	return c
}

// provisionAgain makes another instance under another configuration the current one. It says whether the chain lets in
// others now than before. With an error the chain is what it was.
func (c *chain) provisionAgain(ctx caddy.Context) (changed bool, err error) {
	i, err := provision(ctx, c.json)
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

// closed answers in place of a chain that Caddy refuses. The Refusal has said why, once; the log need not, each time.
var closed caddyhttp.Handler = caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusServiceUnavailable)
	return nil
})

// provisionRoutes turns a panic of a module into an error: one bad chain must not end the process.
func provisionRoutes(ctx caddy.Context, routes caddyhttp.RouteList) (err error) {
	if caught := panics.Try(func() { err = routes.Provision(ctx) }); caught != nil {
		return fmt.Errorf("panic: %w", caught)
	}
	return err
}

// compile makes one handler of routes. Routes without matchers, which is what package render makes, are joined here once;
// caddyhttp.RouteList would join them again for each request.
func compile(routes caddyhttp.RouteList) caddyhttp.Handler {
	for _, route := range routes {
		if len(route.MatcherSetsRaw) > 0 || len(route.MatcherSets) > 0 || route.Group != "" || route.Terminal {
			return routes.Compile(last)
		}
	}
	handler := last
	for i := len(routes) - 1; i >= 0; i-- {
		for j := len(routes[i].Handlers) - 1; j >= 0; j-- {
			handler = join(routes[i].Handlers[j], handler)
		}
	}
	return handler
}

func join(handler caddyhttp.MiddlewareHandler, next caddyhttp.Handler) caddyhttp.Handler {
	return caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		return handler.ServeHTTP(w, r, next)
	})
}

// last answers when no handler of a chain did.
var last caddyhttp.Handler = caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
	return caddyhttp.Error(http.StatusNotFound, nil)
})

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
