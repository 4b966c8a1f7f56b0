package live

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/filter"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/pools"
	"github.com/k8singress/k8singress/internal/proxy"
)

// step is a part of a chain: a filter, a handler of Caddy, or the end, where the request goes to an endpoint. One of them is set.
type step struct {
	filter  filter.Filter
	handler caddyhttp.MiddlewareHandler
	proxy   *proxy.Settings
}

// Visit is an exchange in a chain. Handlers of Caddy inside of the chain find it in the context.
type Visit struct {
	x           *exchange.Exchange
	connections *proxy.Pool
	instance    *instance
	to          *destination
}

// visits are used again, but for those of exchanges that are kept.
var visits = pools.NewStructs[Visit]("live: visit")

// run lets a request through the steps of its chain, from one on.
func (v *Visit) run(from int) error {
	steps := v.instance.steps
	for n := from; n < len(steps); n++ {
		switch s := &steps[n]; {
		case s.proxy != nil:
			return v.connections.Forward(v.x, s.proxy, v.to.secured)
		case s.handler != nil:
			return v.through(s.handler, v.from(n+1))
		default:
			if answered, err := s.filter.Apply(v.x); answered || err != nil {
				return err
			}
		}
	}
	return exchange.Fail(http.StatusNotFound, nil)
}

// from returns run as a function. It stands apart, so that only visits with handlers of Caddy pay for one.
func (v *Visit) from(step int) func() error { return func() error { return v.run(step) } }

type visitKey struct{}

// VisitFrom returns the visit that a request of a handler of Caddy belongs to, or nil.
func VisitFrom(ctx context.Context) *Visit {
	v, _ := ctx.Value(visitKey{}).(*Visit)
	return v
}

// Exchange returns what the visit is of.
func (v *Visit) Exchange() *exchange.Exchange { return v.x }

// through lets the request through a handler of Caddy, and through what is behind it, if the handler asks for that. What Caddy does
// for each request is done here, and only here.
func (v *Visit) through(handler caddyhttp.MiddlewareHandler, behind func() error) error {
	x := v.x
	x.Kept = true
	if VisitFrom(x.Context()) != v {
		x.SetContext(context.WithValue(x.Context(), visitKey{}, v))
	}
	head, giveBack := x.TakeChanges()
	w := message.NewResponseWriter(x.Writer, head)
	r := x.ToHTTP()
	if _, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); !ok && x.Prepare != nil {
		r = x.Prepare(w, r)
	}
	err := handler.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		return v.enter(w, r, behind)
	}))
	giveBack()
	if err != nil && !w.Started() || errors.Is(err, exchange.ErrCut) {
		x.Left = append(x.Left, w.Left()...)
		return failureOf(err)
	}
	return errors.Join(err, w.Finish())
}

// enter has fn work on the exchange with what handlers of Caddy have made of the request, and with their answer.
func (v *Visit) enter(w http.ResponseWriter, r *http.Request, fn func() error) error {
	x := v.x
	writer, target, conn := x.Writer, x.Target, x.Conn
	inner := message.NewHTTPWriter(w, r)
	x.Update(r)
	x.Target, x.Conn, x.Writer = target, conn, inner
	defer func() { x.Writer = writer }()
	err := fn()
	if inner.Aborted() {
		writer.Abort()
	}
	return err
}

// Apply lets a request that comes from a handler of Caddy through a filter, and to what is behind it.
func (v *Visit) Apply(f filter.Filter, w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return v.enter(w, r, func() error {
		answered, err := f.Apply(v.x)
		if answered || err != nil {
			return err
		}
		return v.through(caddyhttp.MiddlewareHandler(last{next}), nil)
	})
}

// Forward sends a request that comes from a handler of Caddy to an endpoint.
func (v *Visit) Forward(s *proxy.Settings, w http.ResponseWriter, r *http.Request) error {
	return v.enter(w, r, func() error { return v.connections.Forward(v.x, s, v.to.secured) })
}

// last is a handler behind which nothing stands.
type last struct{ caddyhttp.Handler }

func (l last) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	return l.Handler.ServeHTTP(w, r)
}

// failureOf keeps the status that a handler of Caddy has said.
func failureOf(err error) error {
	var theirs caddyhttp.HandlerError
	if errors.As(err, &theirs) && !errors.As(err, new(*exchange.Failure)) {
		return exchange.Fail(theirs.StatusCode, err)
	}
	return err
}
