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

// chain is a handler chain, which is configured as a list of Caddy routes. Destinations with equal JSON for their chain
// share one chain value.
type chain struct {
	id chainID
	// source is the JSON of the chain, as in the live configuration.
	source []byte
	shared *sharedSteps
	// users is the reference count: the number of destinations of routes in the table that use the chain. Only the
	// goroutine that changes the table may access it.
	users int
	// refused is the reason why the chain returns 503 instead of running its handlers. It is nil for a chain that
	// works. Only the goroutine that changes the table may access it.
	refused error
	// current is the instance for new requests, or nil after the chain was removed from the table. It is replaced when
	// Caddy loads a new configuration. Requests in flight continue with the old instance.
	current atomic.Pointer[instance]
}

// chainID is the SHA-256 digest of a chain's JSON.
type chainID [sha256.Size]byte

// instance is a chain that was provisioned for one Caddy configuration. An instance with Caddy handlers has its own
// caddy.Context, which cancel ends.
type instance struct {
	steps  []step
	cancel func()
	parts  *configDigest
	// shared lists the steps that the instance may share with other chains. Only the goroutine that changes the table
	// may access it.
	shared []*sharedStep
	// holders is the reference count: the number of requests that use the instance, plus one while it is the current
	// instance of its chain. When the count reaches zero, the instance is cleaned up and the count stays at zero.
	holders atomic.Int64
}

// configDigest is a digest of the parts of the Caddy configuration that a chain depends on; see RecordConfig. If these
// parts do not change, the next instance of the chain gets the same pointer.
type configDigest struct{ digest string }

// provision creates an instance of a chain. ctx is the context of the Caddy app. It must not be canceled when Caddy
// loads a new configuration, because requests may still use the instance.
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

// SharedFrom returns the resources that the filters of all chains share. ctx must be the context with which a chain
// provisions its handlers. SharedFrom returns nil for other contexts.
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

// newUnavailable returns a chain that responds to all requests with 503. why is the reason to report.
func newUnavailable(why error) *chain {
	i := &instance{steps: unavailableSteps, cancel: func() {}, parts: &configDigest{}}
	i.holders.Store(1)
	c := &chain{users: 1, refused: why}
	c.current.Store(i)
	return c
}

// needsCaddy reports whether an instance has Caddy handlers. An instance without them does not depend on the Caddy
// configuration.
func (i *instance) needsCaddy() bool {
	return slices.ContainsFunc(i.steps, func(s step) bool { return s.handler != nil })
}

// provisionAgain provisions the chain under ctx and makes the result the current instance. A working chain without
// Caddy handlers stays unchanged. changed reports whether the parts of the Caddy configuration that the handlers depend
// on have changed. If provisioning fails, the current instance stays in use.
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

// unavailableSteps are the steps of a chain that cannot be used. They respond with 503.
var unavailableSteps = []step{{filter: unavailable{}}}

type unavailable struct{}

// Apply responds with 503. The reason is reported as a Refusal, so it is not logged for each request.
func (unavailable) Apply(x *exchange.Exchange) (bool, error) {
	return true, x.Respond(http.StatusServiceUnavailable, "")
}

// acquire returns the current instance for a new request and increments its reference count. The caller must call
// release. acquire returns nil if the chain is no longer in the table; the caller must then look up the route again.
func (c *chain) acquire() *instance {
	for {
		i := c.current.Load()
		if i == nil {
			return nil
		}
		holders := i.holders.Load()
		// If the count is zero, the instance has just been replaced, and Load will return the new instance.
		if holders > 0 && i.holders.CompareAndSwap(holders, holders+1) {
			return i
		}
	}
}

func (i *instance) release() {
	if i.holders.Add(-1) == 0 {
		// The cleanup of modules runs in a goroutine, so that the request does not wait for it.
		panics.Go("live/chain", i.cancel)
	}
}

// replace makes next the current instance. If next is nil, the chain has no instance any more. The old instance is
// cleaned up when its last request has ended.
func (c *chain) replace(next *instance) {
	if old := c.current.Swap(next); old != nil {
		c.shared.forget(old.shared)
		old.release()
	}
}
