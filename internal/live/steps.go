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

	"github.com/k8singress/k8singress/internal/filter"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/proxy"
)

// sharedSteps are the steps that are made of their JSON alone. All chains with equal JSON for a step share it: where a cluster has many
// chains, most differ in one step. It belongs to the table's writer.
type sharedSteps struct {
	// filters is what filters have in common.
	filters *filter.Shared
	all     map[string]*sharedStep
}

// sharedStep is one of them, by its JSON.
type sharedStep struct {
	step
	source string
	// users counts the instances of chains that have it.
	users int
}

func newSharedSteps(filters *filter.Shared) *sharedSteps {
	return &sharedSteps{filters: filters, all: map[string]*sharedStep{}}
}

// keep has a step found by its JSON.
func (s *sharedSteps) keep(of step, raw json.RawMessage) *sharedStep {
	one := &sharedStep{step: of, source: string(raw)}
	s.all[one.source] = one
	return one
}

// forget takes one user off each step. Those without any are forgotten; requests that are in them go on.
func (s *sharedSteps) forget(steps []*sharedStep) {
	for _, one := range steps {
		if one.users--; one.users == 0 {
			delete(s.all, one.source)
		}
	}
}

// building makes the steps of an instance of a chain.
type building struct {
	parent caddy.Context
	shared *sharedSteps
	// sub is the context of handlers of Caddy. It is nil until the first of them: it costs more than all else that a chain has.
	sub    *caddy.Context
	cancel func()
	// sum digests what handlers take from the configuration.
	sum   hash.Hash
	steps []step
	taken []*sharedStep
}

// context makes the context on its first call.
func (b *building) context() caddy.Context {
	if b.sub == nil {
		b.sum = sha256.New()
		ctx := b.parent
		ctx.Context = context.WithValue(context.WithValue(ctx.Context, partsKey{}, b.sum), sharedKey{}, b.shared.filters)
		sub, cancel := caddy.NewContext(ctx)
		b.sub, b.cancel = &sub, cancel
	}
	return *b.sub
}

// nothingOfConfig is what a chain without handlers of Caddy takes from the configuration.
var nothingOfConfig = &configDigest{}

func (b *building) digest() *configDigest {
	if b.sum == nil {
		return nothingOfConfig
	}
	return &configDigest{string(b.sum.Sum(nil))}
}

// compile makes steps of routes. Routes with matchers are left to Caddy, with all that is in them. A panic of a module becomes an
// error: one bad chain must not end the process.
func (b *building) compile(routes caddyhttp.RouteList) (err error) {
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

// conditional says whether a route is not for every request, or ends the list for some.
func conditional(r caddyhttp.Route) bool {
	return len(r.MatcherSetsRaw) > 0 || r.Group != "" || r.Terminal
}

// matched are routes that Caddy has to choose from.
type matched struct{ routes caddyhttp.RouteList }

func (m matched) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return m.routes.Compile(next).ServeHTTP(w, r)
}

// proxyHandler is the name of the handler at the end of a chain.
const proxyHandler = "k8singress_proxy"

// add makes the next step, or takes one that another chain has.
func (b *building) add(raw json.RawMessage) error {
	if one := b.shared.all[string(raw)]; one != nil {
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

func (b *building) take(one *sharedStep) {
	one.users++
	b.steps, b.taken = append(b.steps, one.step), append(b.taken, one)
}

// newStep says as well whether other chains may have the step, too.
func (b *building) newStep(name string, raw json.RawMessage) (_ step, shareable bool, err error) {
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
