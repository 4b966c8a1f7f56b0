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
	"github.com/k8singress/k8singress/internal/process/panics"
)

// sharedSteps holds the steps that depend only on their JSON. Chains share steps with equal JSON to save memory: in a
// cluster with many chains, most chains differ in a single step. Only the goroutine that changes the table may use it.
type sharedSteps struct {
	// filters holds the resources that filters share.
	filters *filter.Shared
	all     map[string]*sharedStep
}

// sharedStep is one shared step with its JSON.
type sharedStep struct {
	step
	source string
	// users is the reference count: the number of chain instances that use the step.
	users int
}

func newSharedSteps(filters *filter.Shared) *sharedSteps {
	return &sharedSteps{filters: filters, all: map[string]*sharedStep{}}
}

// keep stores a step under its JSON.
func (s *sharedSteps) keep(of step, raw json.RawMessage) *sharedStep {
	one := &sharedStep{step: of, source: string(raw)}
	s.all[one.source] = one
	return one
}

// forget decrements the reference count of each step and removes the steps that no instance uses any more. Requests
// that are using a removed step continue.
func (s *sharedSteps) forget(steps []*sharedStep) {
	for _, one := range steps {
		if one.users--; one.users == 0 {
			delete(s.all, one.source)
		}
	}
}

// chainBuilder builds the steps of a chain instance.
type chainBuilder struct {
	parent caddy.Context
	shared *sharedSteps
	// sub is the context for Caddy handlers. It is nil until the first handler needs it, because it costs more than all
	// other parts of a chain.
	sub    *caddy.Context
	cancel func()
	// sum is the hash of the parts of the Caddy configuration that handlers pass to RecordConfig.
	sum   hash.Hash
	steps []step
	taken []*sharedStep
}

// context returns the context for Caddy handlers. The first call creates it.
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

// emptyDigest is the digest of a chain without Caddy handlers.
var emptyDigest = &configDigest{}

func (b *chainBuilder) digest() *configDigest {
	if b.sum == nil {
		return emptyDigest
	}
	return &configDigest{string(b.sum.Sum(nil))}
}

// compile turns routes into steps. If a route has matchers, the whole list becomes one step that Caddy evaluates. A
// panic of a module becomes an error, because one faulty chain must not end the process.
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

// conditional reports whether a route has matchers, belongs to a group or is terminal.
func conditional(r caddyhttp.Route) bool {
	return len(r.MatcherSetsRaw) > 0 || r.Group != "" || r.Terminal
}

// matched is a route list with matchers, which Caddy evaluates.
type matched struct{ routes caddyhttp.RouteList }

func (m matched) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return m.routes.Compile(next).ServeHTTP(w, r)
}

// proxyHandler is the module name of the handler that forwards requests to endpoints. It is the last handler of a
// chain.
const proxyHandler = "k8singress_proxy"

// add appends the step for a handler. It reuses a shared step with the same JSON.
func (b *chainBuilder) add(raw json.RawMessage) error {
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

func (b *chainBuilder) take(one *sharedStep) {
	one.users++
	b.steps, b.taken = append(b.steps, one.step), append(b.taken, one)
}

// newStep creates the step for a handler. shareable reports whether other chains may use the step too.
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
