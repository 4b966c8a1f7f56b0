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

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/filter"
	"github.com/k8singress/k8singress/internal/panics"
)

// chain is a list of Caddy routes, interned by its JSON: all routes with equal JSON share it.
type chain struct {
	id chainID
	// source is the JSON, which is that of a document.
	source []byte
	shared *sharedSteps
	// users counts the routes in the table that have it. It belongs to the table's writer.
	users int
	// refused is why the chain answers 503 in place of what it says; it is nil for one that works. It belongs to the table's
	// writer.
	refused error
	// current changes when Caddy loads a new configuration; requests that began with the old one end with it.
	current atomic.Pointer[instance]
}

// chainID is the digest of a chain's JSON.
type chainID [sha256.Size]byte

// instance is a chain provisioned under one Caddy configuration. With handlers of Caddy it has a sub-context of its own.
type instance struct {
	steps  []step
	cancel func()
	parts  *configDigest
	// shared are those of its steps that other chains may have, too. They belong to the table's writer.
	shared []*sharedStep
	// holders counts the requests in it, and one more while it is current. At zero it is cleaned up, and stays zero.
	holders atomic.Int64
}

// configDigest are what a chain takes from the configuration. See NoteConfig. Instances that follow each other with the same share one.
type configDigest struct{ digest string }

// provision makes an instance of a chain. ctx is the context of the app; it must not be cancelled when Caddy loads a new configuration,
// because requests may go on.
func provision(ctx caddy.Context, source []byte, shared *sharedSteps) (*instance, error) {
	var routes caddyhttp.RouteList
	if err := caddy.StrictUnmarshalJSON(source, &routes); err != nil {
		return nil, fmt.Errorf("decoding the chain: %w", err)
	}
	b := &building{parent: ctx, shared: shared, cancel: func() {}}
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
func newChain(ctx caddy.Context, id chainID, source []byte, shared *sharedSteps) *chain {
	i, err := provision(ctx, source, shared)
	c := &chain{users: 1}
	if err != nil {
		c = newClosed(refusedByCaddy(err))
	} else {
		c.current.Store(i)
	}
	c.id, c.source, c.shared = id, source, shared
	return c
}

func refusedByCaddy(err error) error {
	return fmt.Errorf("the handler chain was rejected by Caddy: %w", err)
}

// newClosed returns a chain that answers 503.
func newClosed(why error) *chain {
	i := &instance{steps: closed, cancel: func() {}, parts: &configDigest{}}
	i.holders.Store(1)
	c := &chain{users: 1, refused: why}
	c.current.Store(i)
	return c
}

// needsCaddy says whether an instance has handlers of Caddy. Another configuration makes no difference to one without.
func (i *instance) needsCaddy() bool {
	return slices.ContainsFunc(i.steps, func(s step) bool { return s.handler != nil })
}

// provisionAgain makes another instance under another configuration the current one. It says whether the chain lets in
// others now than before. With an error the chain is what it was.
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

// closed answers in place of a chain that Caddy refuses.
var closed = []step{{filter: unavailable{}}}

type unavailable struct{}

// Apply answers 503. The Refusal has said why, once; the log need not, each time.
func (unavailable) Apply(x *exchange.Exchange) (bool, error) {
	return true, x.Respond(http.StatusServiceUnavailable, "")
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
		panics.Go("live/chain", i.cancel)
	}
}

// replace makes another instance, or none, the current one. The old one ends with its last request.
func (c *chain) replace(next *instance) {
	if old := c.current.Swap(next); old != nil {
		c.shared.forget(old.shared)
		old.release()
	}
}
