package live

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// sharedSteps holds the handlers that several handler chains share, by the JSON of the handlers. Sharing saves memory,
// because most chains of a cluster differ in a single handler. Only handlers that depend on nothing except their JSON
// are shared. Only the goroutine that changes the routing table may use sharedSteps.
type sharedSteps struct {
	// filters holds the resources, such as caches, that the filters of all chains share.
	filters *filter.Shared
	all     shrinking.Map[string, *sharedStep]
}

// sharedStep is a handler that several chains may share. source is its JSON.
type sharedStep struct {
	step
	source string
	// users is the reference count: the number of chain instances that use the handler.
	users int
}

func newSharedSteps(filters *filter.Shared) *sharedSteps {
	return &sharedSteps{filters: filters}
}

// keep stores a handler, with its JSON (raw) as the key, so that other chains can share the handler.
func (s *sharedSteps) keep(of step, raw json.RawMessage) *sharedStep {
	one := &sharedStep{step: of, source: string(raw)}
	s.all.Set(one.source, one)
	return one
}

// forget decrements the reference count of each handler in steps, and removes the handlers that no chain instance uses
// any more. Requests in flight can still use a removed handler.
func (s *sharedSteps) forget(steps []*sharedStep) {
	for _, one := range steps {
		if one.users--; one.users == 0 {
			s.all.Delete(one.source)
		}
	}
}

// chainBuilder creates the handlers of a chain instance.
type chainBuilder struct {
	parent caddy.Context
	shared *sharedSteps
	// sub is the context for the Caddy handlers of the chain. It is nil until the first Caddy handler is created,
	// because a context uses more memory than the rest of the chain.
	sub    *caddy.Context
	cancel func()
	// sum is the hash of the parts of the Caddy configuration that the handlers have passed to RecordConfig.
	sum   hash.Hash
	steps []step
	taken []*sharedStep
}

// context returns the context for the Caddy handlers of the chain. The first call creates it.
func (b *chainBuilder) context() caddy.Context {
	if b.sub == nil {
		b.sum = sha256.New()
		ctx := b.parent
		ctx.Context = context.WithValue(context.WithValue(ctx.Context, partsKey{}, b.sum), sharedKey{},
			b.shared.filters)
		sub, cancel := caddy.NewContext(ctx)
		b.sub, b.cancel = &sub, cancel
	}
	return *b.sub
}

// emptyDigest is the digest for all chains without Caddy handlers, because they do not depend on the Caddy
// configuration.
var emptyDigest = &configDigest{}

func (b *chainBuilder) digest() *configDigest {
	if b.sum == nil {
		return emptyDigest
	}
	return &configDigest{string(b.sum.Sum(nil))}
}

// compile creates the handlers of a chain from its Caddy routes. If a route has matchers, all routes together become
// one handler, because Caddy must evaluate the matchers. If a module panics, compile returns an error, so that one
// faulty chain does not end the process.
func (b *chainBuilder) compile(routes caddyhttp.RouteList) (err error) {
	if caught := panics.Try(func() {
		if slices.ContainsFunc(routes, conditional) {
			err = routes.Provision(b.context())
			b.steps = []step{{handler: matched{routes}}}
			return
		}
		handlers := 0
		for _, route := range routes {
			handlers += len(route.HandlersRaw)
		}
		b.steps, b.taken = make([]step, 0, handlers), make([]*sharedStep, 0, handlers)
		for _, route := range routes {
			for _, raw := range route.HandlersRaw {
				if err = b.add(raw); err != nil {
					return
				}
			}
		}
	}); caught != nil {
		return fmt.Errorf("panic: %w", caught)
	}
	return err
}

// conditional reports whether Caddy must evaluate the route: it has matchers, belongs to a group, or is terminal.
func conditional(r caddyhttp.Route) bool {
	return len(r.MatcherSetsRaw) > 0 || r.Group != "" || r.Terminal
}

// matched is a Caddy handler that runs a list of routes with matchers.
type matched struct{ routes caddyhttp.RouteList }

func (m matched) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return m.routes.Compile(next).ServeHTTP(w, r)
}

// proxyHandler is the name of the handler that forwards requests to endpoints. It is the last handler of a chain.
const proxyHandler = "k8singress_proxy"

// add appends a handler, given as JSON, to the chain. If a shared handler with the same JSON exists, it is used.
func (b *chainBuilder) add(raw json.RawMessage) error {
	if one := b.shared.all.Get(string(raw)); one != nil {
		b.take(one)
		return nil
	}
	var of struct {
		Handler string `json:"handler"`
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return fmt.Errorf("decoding a handler: %w", err)
	}
	next, shareable, err := b.newStep(of.Handler, raw)
	switch {
	case err != nil:
		return err
	case shareable:
		b.take(b.shared.keep(next, raw))
	default:
		b.steps = append(b.steps, next)
	}
	return nil
}

func (b *chainBuilder) take(one *sharedStep) {
	one.users++
	b.steps, b.taken = append(b.steps, one.step), append(b.taken, one)
}

// newStep creates a handler from its name and JSON. shareable reports whether other chains may use the handler too.
func (b *chainBuilder) newStep(name string, raw json.RawMessage) (_ step, shareable bool, err error) {
	if name == proxyHandler {
		settings, err := filter.Decode[ir.Proxy](raw)
		if err != nil {
			return step{}, false, err
		}
		s, err := proxy.NewSettings(settings)
		return step{proxy: s}, true, err
	}
	if f, ok, err := filter.New(name, raw, b.shared.filters); ok {
		return step{filter: f}, filter.Stateless(name), err
	}
	module, err := b.context().LoadModule(&struct {
		Raw json.RawMessage `caddy:"namespace=http.handlers inline_key=handler"`
	}{raw}, "Raw")
	if err != nil {
		return step{}, false, fmt.Errorf("loading the handler %s: %w", name, err)
	}
	return step{handler: module.(caddyhttp.MiddlewareHandler)}, false, nil
}
