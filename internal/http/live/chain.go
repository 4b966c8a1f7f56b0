package live

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// chain is a handler chain: a list of handlers that process a request, configured as Caddy routes. All destinations
// whose handler chains have the same JSON share one chain value.
type chain struct {
	id chainID
	// source is the JSON of the handler chain, as in the live configuration.
	source []byte
	shared *sharedSteps
	// users is the reference count: the number of route destinations in the routing table that use the chain. Only the
	// goroutine that changes the routing table may access it.
	users int
	// refused is the reason why the chain responds with 503 instead of running its handlers. It is nil for a chain that
	// works. Only the goroutine that changes the routing table may access it.
	refused error
	// current is the instance for new requests. A new instance replaces it when Caddy loads a new configuration;
	// requests in flight continue with the old instance. current is nil after the chain was removed from the routing
	// table.
	current atomic.Pointer[instance]
}

// chainID is the SHA-256 digest of a chain's JSON.
type chainID [sha256.Size]byte

// instance is a handler chain that was provisioned for one Caddy configuration. If it contains Caddy handlers, it has
// its own caddy.Context; the function cancel cancels this context, which cleans up the handlers.
type instance struct {
	steps  []step
	cancel func()
	parts  *configDigest
	// shared lists the handlers of this instance that instances of other chains may use, too. Only the goroutine that
	// changes the routing table may access it.
	shared []*sharedStep
	// holders is the reference count: the number of requests in flight that use the instance, plus one while it is the
	// current instance of its chain. When the count reaches zero, the instance is cleaned up and must not be used
	// again.
	holders atomic.Int64
}

// configDigest is a digest of the parts of the Caddy configuration that a handler chain depends on; see RecordConfig.
// If these parts do not change, a new instance of the chain keeps the configDigest pointer of the old instance.
type configDigest struct{ digest string }

// provision creates an instance of a handler chain from its JSON. ctx is the context of the Caddy app. It must not be
// canceled when Caddy loads a new configuration, because requests in flight may still use the instance.
func provision(ctx caddy.Context, source []byte, shared *sharedSteps) (*instance, error) {
	var routes caddyhttp.RouteList
	if err := caddy.StrictUnmarshalJSON(source, &routes); err != nil {
		return nil, fmt.Errorf("decoding the chain: %w", err)
	}
	b := &chainBuilder{parent: ctx, shared: shared, cancel: func() {}}
	if err := b.compile(routes); err != nil {
		shared.forget(b.taken)
		b.cancel()
		return nil, err
	}
	i := &instance{steps: b.steps, cancel: b.cancel, parts: b.digest(), shared: b.taken}
	i.holders.Store(1)
	return i, nil
}

type partsKey struct{}

// RecordConfig records a part of the Caddy configuration that a handler depends on. Handlers call it in Provision. If a
// recorded part changes, the open streams (such as WebSocket connections) of the routes with this handler are ended
// after the drain time.
func RecordConfig(ctx context.Context, part []byte) {
	if sum, ok := ctx.Value(partsKey{}).(hash.Hash); ok {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
}

type sharedKey struct{}

// SharedFrom returns the resources that the filters of all handler chains share. ctx must be the context that was
// passed to the handler's Provision method. SharedFrom returns nil for other contexts.
func SharedFrom(ctx context.Context) *filter.Shared {
	shared, _ := ctx.Value(sharedKey{}).(*filter.Shared)
	return shared
}

// newChain creates a chain from its JSON. If Caddy rejects the JSON, the chain responds to all requests with 503.
func newChain(ctx caddy.Context, id chainID, source []byte, shared *sharedSteps) *chain {
	i, err := provision(ctx, source, shared)
	c := &chain{users: 1}
	if err != nil {
		c = newUnavailable(refusedByCaddy(err))
	} else {
		c.current.Store(i)
	}
	c.id, c.source, c.shared = id, source, shared
	return c
}

func refusedByCaddy(err error) error {
	return fmt.Errorf("the handler chain was rejected by Caddy: %w", err)
}

// newUnavailable returns a handler chain that responds to all requests with 503. The error why is reported as the
// reason for each route with this chain.
func newUnavailable(why error) *chain {
	i := &instance{steps: unavailableSteps, cancel: func() {}, parts: &configDigest{}}
	i.holders.Store(1)
	c := &chain{users: 1, refused: why}
	c.current.Store(i)
	return c
}

// needsCaddy reports whether the instance contains Caddy handlers, in addition to filters and the proxy. An instance
// without Caddy handlers does not depend on the Caddy configuration.
func (i *instance) needsCaddy() bool {
	return slices.ContainsFunc(i.steps, func(s step) bool { return s.handler != nil })
}

// provisionAgain provisions the chain for the Caddy configuration of ctx, and uses the new instance for new requests.
// It does nothing for a working chain without Caddy handlers. If it fails, the old instance stays in use. changed is
// true if the parts of the Caddy configuration that the handlers depend on have changed.
func (c *chain) provisionAgain(ctx caddy.Context) (changed bool, err error) {
	if c.refused == nil && !c.current.Load().needsCaddy() {
		return false, nil
	}
	i, err := provision(ctx, c.source, c.shared)
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

// unavailableSteps is used in place of the handlers of a chain that cannot be used. Its only handler responds with 503.
var unavailableSteps = []step{{filter: unavailable{}}}

type unavailable struct{}

var errUnavailable = exchange.Rejection(http.StatusServiceUnavailable,
	"the handler chain of the path cannot be used: see the verdicts on the Ingress")

// Apply rejects the request with 503. Table.Refused reports the reason once.
func (unavailable) Apply(x *exchange.Exchange) (bool, error) {
	return x.RespondError(errUnavailable)
}

// acquire returns the current instance for a new request and increments its reference count. The caller must release
// the instance after the request. acquire returns nil if the chain is no longer in the routing table; the caller must
// then look up the route again.
func (c *chain) acquire() *instance {
	for {
		i := c.current.Load()
		if i == nil {
			return nil
		}
		holders := i.holders.Load()
		// If the count is zero, another goroutine has just replaced the instance, so the loop loads the new instance.
		if holders > 0 && i.holders.CompareAndSwap(holders, holders+1) {
			return i
		}
	}
}

func (i *instance) release() {
	if i.holders.Add(-1) == 0 {
		// Clean up the Caddy handlers in another goroutine, so that the request does not wait for the cleanup.
		panics.Go("live/chain", i.cancel)
	}
}

// replace makes next the current instance of the chain. The old instance is cleaned up when its last request has ended.
// If next is nil, the chain is removed: acquire then returns nil.
func (c *chain) replace(next *instance) {
	if old := c.current.Swap(next); old != nil {
		c.shared.forget(old.shared)
		old.release()
	}
}
